/* What is text. The guestbook itself is tried from outside, in servers/guestbook.c. */
#include "text.h"
#include "unit.h"

TestSuite(text, .timeout = 60);

/* How many of the texts that begin and go on with these bytes hold no control character, and are
 * UTF-8. */
static long count_texts(int first, int last, int len, char end, bool lines)
{
    long count = 0;
    for (int head = first; head <= last; head++)
        for (int i = 0; i < 1 << 16; i++) {
            char text[] = {(char)head, (char)(i >> 8), (char)i, end};
            count += text_count_characters((struct span){text, (size_t)len}, lines) > 0;
        }
    return count;
}

/* The Unicode Standard, table 3-7. */
Test(text, as_many_texts_are_utf_8_as_unicode_says)
{
    const long one = 0x7f - 0x20, two = 0x800 - 0xa0, three = 0x10000 - 0x800 - 0x800 - 2;
    expect_number("three bytes", count_texts(0, 255, 3, 0, false),
                  one * one * one + 2 * one * two + three);
    expect_number("two, with lines", count_texts(0, 255, 2, 0, true),
                  ((one + 2) * (one + 2) + two) << 8);
    for (size_t i = 0; i < 4; i++)
        expect_number("four", count_texts(0xf0, 0xff, 4, "\x7f\x80\xbf\xc0"[i], false),
                      i == 1 || i == 2 ? 0x100000 >> 6 : 0);
}

/* What is escaped is tried from outside; here a sanitizer looks on. */
Test(text, what_is_written_out_stays_in_its_room)
{
    for (size_t size = 1; size < 20; size++) {
        char *small = malloc(size);
        text_escape("\r\n\r\n\r\n", 6, small, size);
        expect_number(small, strlen(small), (size - 1) / 4 * 4);
        free(small);
    }
}
