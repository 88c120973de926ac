#!/usr/bin/env escript
%% erlang: the page with gen_tcp, which reads HTTP's lines itself, with eredis and bbmustache. Each client has
%% a process of Erlang. Its code blocks; the scheduler's thread below it does not.
%%   escript guestbook.erl --port N --redis HOST:PORT       started where templates/ is
-mode(compile).

main(["--port", Port, "--redis", Where]) ->
    [Host, RedisPort] = string:split(Where, ":", trailing),
    {ok, Redis} = eredis:start_link(Host, list_to_integer(RedisPort)), % one connection for all
    {ok, _} = eredis:q(Redis, ["PING"]), % now it is connected
    [inet:setopts(Each, [{nodelay, true}]) || Each <- element(2, process_info(Redis, links)), is_port(Each)],
    Template = bbmustache:parse_file("templates/guestbook/index.html"),
    {ok, Listener} = gen_tcp:listen(list_to_integer(Port), [binary, {packet, http_bin}, {active, false},
        {reuseaddr, true}, {ip, {127, 0, 0, 1}}, {backlog, 1024}]),
    Least = lists:min([element(1, timer:tc(fun() -> compute(10) end)) || _ <- lists:seq(1, 9)]), % not interrupted
    Rounds = list_to_integer(os:getenv("WORK_US", "0")) * 10 div Least,
    accept(Listener, fun() -> compute(Rounds), page(Redis, Template) end).

%% As with --work of the seven. A process of Erlang has no clock of its CPU time, so its work is counted.
compute(Rounds) -> [erlang:crc32(<<0:524288>>) || _ <- lists:seq(1, Rounds)].

accept(Listener, Page) ->
    {ok, Client} = gen_tcp:accept(Listener),
    gen_tcp:controlling_process(Client, spawn(fun() -> serve(Client, Page) end)),
    accept(Listener, Page).

serve(Client, Page) ->
    case gen_tcp:recv(Client, 0) of
        {ok, {http_request, _, {abs_path, Path}, Version}} ->
            Keep = headers(Client, Version =:= {1, 1}),
            {Status, Body} = if Path =:= <<"/guestbook">> -> {"200 OK", Page()}; true -> {"404 Not Found", <<>>} end,
            gen_tcp:send(Client, ["HTTP/1.1 ", Status, ["\r\nConnection: close" || not Keep], "\r\nContent-Type: ",
                "text/html; charset=utf-8\r\nContent-Length: ", integer_to_list(byte_size(Body)), "\r\n\r\n", Body]),
            if Keep -> serve(Client, Page); true -> gen_tcp:close(Client) end;
        _ -> gen_tcp:close(Client) % or it has left
    end.

%% Reads them all. Is the connection to be kept?
headers(Client, Keep) ->
    case gen_tcp:recv(Client, 0) of
        {ok, {http_header, _, 'Connection', _, V}} -> headers(Client, Keep andalso string:lowercase(V) =/= <<"close">>);
        {ok, {http_header, _, _, _, _}} -> headers(Client, Keep);
        {ok, http_eoh} -> Keep;
        _ -> exit(normal)
    end.

page(Redis, Template) ->
    {ok, _} = eredis:q(Redis, ["INCR", "guestbook:visitors"]),
    {ok, Visitors} = eredis:q(Redis, ["GET", "guestbook:visitors"]),
    {ok, Found} = eredis:q(Redis, ["LRANGE", "guestbook:entries", "-21", "-1"]), % the last one is the newest
    bbmustache:compile(Template, #{"server" => "erlang", "page" => 1, "counted" => true,
        "visitors" => re:replace(Visitors, "\\B(?=(\\d{3})+$)", ",", [global, {return, binary}]),
        "entries" => [shown(Entry) || Entry <- lists:sublist(lists:reverse(Found), 20)],
        "nobody" => Found =:= [], "older" => length(Found) > 20, "older_page" => 2}).

shown(Entry) ->
    [Time, Rest] = binary:split(Entry, <<"\n">>),
    [Name, Remarks] = binary:split(Rest, <<"\n">>),
    #{"signed" => true, "time" => Time, "day" => binary:part(Time, 0, 10), "clock" => binary:part(Time, 11, 5),
      "name" => Name, "remarks" => Remarks}.
