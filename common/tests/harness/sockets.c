/* The server's sockets, as the kernel shows them: sock_diag(7).
 */
#include "harness.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h> /* its tcp_info is longer than libc's */
#include <stddef.h>

enum {
    ROOM = 64 * 1024,
    TOLD = offsetof(struct tcp_info, tcpi_dsack_dups), /* up to tcpi_bytes_retrans: Linux 4.19 */
};
static _Alignas(struct nlmsghdr) char answer[ROOM];

/* One request, and the first piece of what the kernel has to say. Returns its length. */
static ssize_t ask_kernel(int netlink, const struct inet_diag_req_v2 *request, uint16_t flags)
{
    struct {
        struct nlmsghdr header;
        struct inet_diag_req_v2 request;
    } question = {
        .header = {.nlmsg_len = sizeof(question),
                   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                   .nlmsg_flags = NLM_F_REQUEST | flags},
        .request = *request,
    };
    ssize_t len = -1;
    if (netlink >= 0 && send(netlink, &question, sizeof(question), 0) > 0)
        len = recv(netlink, answer, sizeof(answer), 0);
    check(len > 0, "the kernel does not tell of its sockets: %s", strerror(errno));
    return len;
}

static int open_netlink(void)
{
    return socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
}

/* ---- one connection ------------------------------------------------------------------------ */

/* The server's end of a connection, over IPv4. */
static struct inet_diag_req_v2 server_end(const struct client *c)
{
    struct sockaddr_in own = {0};
    socklen_t size = sizeof(own);
    getsockname(c->fd, (struct sockaddr *)&own, &size);
    struct sockaddr_in other = own; /* where they cannot say any more: the same host */
    other.sin_port = htons((uint16_t)server_port);
    getpeername(c->fd, (struct sockaddr *)&other, &size);
    return (struct inet_diag_req_v2){
        .sdiag_family = AF_INET,
        .sdiag_protocol = IPPROTO_TCP,
        .idiag_ext = 1U << (INET_DIAG_INFO - 1),
        .id = {.idiag_sport = other.sin_port,
               .idiag_dport = own.sin_port,
               .idiag_src = {other.sin_addr.s_addr},
               .idiag_dst = {own.sin_addr.s_addr},
               .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}},
    };
}

/* Where there is no such connection, the listener is what the kernel finds. NULL: there is none. */
static const struct inet_diag_msg *look_up(const struct client *c)
{
    static int netlink = -1; /* asked thousands of times by those who cut requests in two */
    if (netlink < 0)
        netlink = open_netlink();
    struct inet_diag_req_v2 request = server_end(c);
    ask_kernel(netlink, &request, 0);
    const struct nlmsghdr *header = (const struct nlmsghdr *)answer;
    const struct inet_diag_msg *end = NLMSG_DATA(header);
    bool is_end = header->nlmsg_type == SOCK_DIAG_BY_FAMILY && end->id.idiag_dport != 0;
    return is_end ? end : NULL;
}

bool find_server_end(const struct client *c, struct inet_diag_msg *found)
{
    const struct inet_diag_msg *end = look_up(c);
    if (end)
        *found = *end;
    return end != NULL;
}

/* Of what was written, some was sent, once or more often, and some not yet. The kernel tells all
 * three under the socket's lock. What the client has, and what it has not confirmed, is another
 * matter: the same byte is in both for up to 50 ms (a delayed ACK: RFC 9293, 3.8.6.3). */
int64_t count_written(const struct client *c)
{
    const struct inet_diag_msg *end = look_up(c);
    if (!end)
        return -1;
    size_t left = ((const struct nlmsghdr *)answer)->nlmsg_len - NLMSG_LENGTH(sizeof(*end));
    const struct rtattr *each = (const struct rtattr *)(end + 1);
    while (RTA_OK(each, left) && each->rta_type != INET_DIAG_INFO)
        each = RTA_NEXT(each, left);
    struct tcp_info info = {0};
    check(RTA_OK(each, left) && RTA_PAYLOAD(each) >= TOLD,
          "the kernel does not tell what was sent");
    memcpy(&info, RTA_DATA(each), TOLD);
    return (int64_t)(info.tcpi_bytes_sent - info.tcpi_bytes_retrans) + info.tcpi_notsent_bytes;
}

/* ---- all of them --------------------------------------------------------------------------- */

/* Counts in one piece of the answer. False: there is no more to come. */
static bool count_in(ssize_t len, bool has_owner, int *count)
{
    for (const struct nlmsghdr *message = (const struct nlmsghdr *)answer;
         NLMSG_OK(message, (size_t)len); message = NLMSG_NEXT(message, len)) {
        const struct inet_diag_msg *socket = NLMSG_DATA(message);
        check(message->nlmsg_type != NLMSG_ERROR, "the kernel does not tell of its sockets");
        if (message->nlmsg_type == NLMSG_DONE)
            return false;
        *count += (socket->idiag_inode != 0) == has_owner;
    }
    return true;
}

/* /proc/net/tcp would tell some of a crowd twice, and needs ten times as long. */
int count_sockets(unsigned states, bool has_owner)
{
    struct inet_diag_req_v2 request = {
        .sdiag_family = AF_INET,
        .sdiag_protocol = IPPROTO_TCP,
        .idiag_states = states,
        .id.idiag_sport = htons((uint16_t)server_port),
    };
    int netlink = open_netlink(), count = 0;
    ssize_t len = ask_kernel(netlink, &request, NLM_F_DUMP);
    while (count_in(len, has_owner, &count)) {
        len = recv(netlink, answer, sizeof(answer), 0);
        check(len > 0, "%s", strerror(errno));
    }
    close(netlink);
    return count;
}
