/* http_date: the dates of http.h (RFC 9110, 5.6.7). */
#include "http.h"

#include <string.h>

void http_format_date(time_t when, char date[HTTP_DATE_SIZE])
{
    struct tm utc;
    gmtime_r(&when, &utc);
    strftime(date, HTTP_DATE_SIZE, "%a, %d %b %Y %H:%M:%S GMT", &utc);
}

time_t http_parse_date(struct span text)
{
    enum {
        FIFTY_YEARS = 50 * 365 * 86400
    }; /* seconds; a year of two digits lies no further ahead */
    static const char *const forms[] = {
        "%a, %d %b %Y %H:%M:%S GMT", /* IMF-fixdate, the form to be sent */
        "%A, %d-%b-%y %H:%M:%S GMT", /* RFC 850 */
        "%a %b %e %H:%M:%S %Y",      /* asctime(3) */
    };
    char date[40], again[40]; /* the longest is a Wednesday in RFC 850's form: 33 bytes */
    if (text.len >= sizeof(date))
        return -1;
    memcpy(date, text.at, text.len);
    date[text.len] = '\0';
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct tm utc = {0};
        const char *end = strptime(date, forms[i], &utc);
        if (!end || *end)
            continue;
        if (i == 1) /* strptime(3) takes two digits for 1969 to 2068 */
            utc.tm_year = 100 + utc.tm_year % 100;
        time_t when = timegm(&utc);
        if (i == 1 && when > time(NULL) + FIFTY_YEARS) {
            utc.tm_year -= 100;
            when = timegm(&utc);
        }
        /* strptime(3) also takes other spaces, other cases, long names, and 31 February. The
         * weekday adds nothing, and is not compared. */
        gmtime_r(&when, &utc);
        strftime(again, sizeof(again), forms[i], &utc);
        const char *rest = strchr(date, ' ');
        return rest && strcmp(rest, strchr(again, ' ')) == 0 ? when : -1;
    }
    return -1;
}
