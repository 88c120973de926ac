<?php
// php: the guestbook's page in PHP, with the extension php-redis. A process of PHP-FPM runs all of it
// for each request, from its first line to its last. (php-fpm starts it, and nginx.)
declare(strict_types=1);

// The project's template is written in Mustache: a comment, a section with a name, or a name alone.
const TAG = '~\{\{(?:!.*?|#(\w+)\}\}(.*?)\{\{/\1|(\w+))\}\}~s';

function render(string $text, array $values): string
{
    return preg_replace_callback(TAG, fn($tag) => isset($tag[3])
        ? htmlspecialchars($values[$tag[3]] ?? '')
        : implode(array_map(fn($item) => render($tag[2], $item + $values),
                            $values[$tag[1] ?? ''] ?? [])), $text);
}

function shown(string $entry): array
{
    [$time, $name, $remarks] = explode("\n", $entry, 3);
    return ['signed' => [[]], 'time' => $time, 'day' => substr($time, 0, 10), 'clock' => substr($time, 11, 5),
            'name' => $name, 'remarks' => $remarks];
}

function spent(): int // microseconds of CPU time
{
    $used = getrusage();
    return 1_000_000 * ($used['ru_utime.tv_sec'] + $used['ru_stime.tv_sec'])
        + $used['ru_utime.tv_usec'] + $used['ru_stime.tv_usec'];
}

[$host, $port] = explode(':', getenv('REDIS'));
$redis = new Redis();
$redis->pconnect($host, (int) $port); // the process keeps the connection

$redis->incr('guestbook:visitors');
$visitors = $redis->get('guestbook:visitors');
$found = $redis->lRange('guestbook:entries', -21, -1); // the last one is the newest

for ($end = spent() + (int) getenv('WORK_US'); spent() < $end;); // as with --work of the seven

$template = file_get_contents(__DIR__ . '/../../templates/guestbook/index.html');
$page = render($template, [
    'server' => 'php', 'page' => '1', 'counted' => [[]],
    'visitors' => number_format((int) $visitors),
    'entries' => array_map('shown', array_reverse(array_slice($found, -20))),
    'nobody' => $found ? [] : [[]],
    'older' => count($found) > 20 ? [[]] : [], 'older_page' => '2',
]);
header('Content-Type: text/html; charset=utf-8');
header('Content-Length: ' . strlen($page));
echo $page;
