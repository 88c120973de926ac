#include "proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool proc_read(pid_t pid, const char *name, char text[PROC_TEXT])
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, PROC_TEXT - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

uint64_t proc_number(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

/* Since Linux 6.2 the folder's size is the number of descriptors. */
uint64_t proc_count_descriptors(pid_t pid)
{
    char path[64];
    struct stat about;
    uint64_t count = 0;
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    if (stat(path, &about) == 0 && about.st_size > 0)
        return (uint64_t)about.st_size;
    DIR *folder = opendir(path);
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count > 2 ? count - 2 : 0; /* "." and ".." */
}

bool proc_read_stat(pid_t pid, struct proc_stat *p)
{
    char text[PROC_TEXT];
    char *at = proc_read(pid, "stat", text) ? strrchr(text, ')') : NULL; /* name's end, field 2 */
    if (!at || strlen(at) < strlen(") R "))
        return false;
    p->state = at[2];
    at += strlen(") R");
    for (int field = PROC_STATE + 1; field < PROC_STAT_FIELDS; field++)
        p->fields[field] = strtoull(at, &at, 10);
    return true;
}
