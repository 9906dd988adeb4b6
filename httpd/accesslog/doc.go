// Package accesslog writes a line for each request of an httpd.Server, to a file or to standard output:
//
//	log := &accesslog.Log{Path: "access.log"}
//	web := &httpd.Server{Handler: site.Serve, OnResponse: log.OnResponse()}
//	server.Run(log, server.Listen(server.Addr, web.Serve))
//
// With package program a Log is also an Option, whose flags are -access-log and -access-log-format: see [Log.OnResponse].
//
// # Formats
//
// [Common] and [Combined] are the formats of those names, as tools expect them:
//
//	192.0.2.1 - - [21/Nov/2026:12:00:00 +0000] "GET /a?b HTTP/1.1" 200 13 "http://a.example/" "curl/8.5"
//
// These are the client's address, two fields that are always "-", when the answer was over, the request line, the status,
// how many bytes of content were sent, and in Combined the fields Referer and User-Agent. The status is 000 if no answer
// was sent. [JSON] has an object on each line (here it takes two), which also
// says how long the request took:
//
//	{"time":"2026-11-21T12:00:00.000Z","client":"192.0.2.1:4711","tls":false,"method":"GET","target":"/a?b",
//	 "protocol":"HTTP/1.1","host":"a","status":200,"bytes":13,"seconds":0.000123,"referer":"","user_agent":"curl/8.5"}
//
// The seconds begin when the first byte of the request is found, or when the answer before it is over. A request has its
// line when httpd calls OnResponse: its answer is over, or the connection has switched to another protocol. A request that
// was refused before its head could be understood has no method and no target: its line has "-" for them, in JSON "".
//
// No client can forge a line. In Common and Combined some bytes of a quoted value are written as \x and two digits: quotes,
// backslashes, control characters, and bytes that are not ASCII. JSON is ASCII, and always valid: bytes that are not UTF-8
// are written as \ufffd. At most 4 KiB of each value are written, and "..." in place of the rest.
//
// # Bounds
//
// A goroutine writes the lines of a scheduler, at most 100 ms late: no disk and no reader of standard output holds up a scheduler.
// If the goroutine falls behind, up to 1 MiB of lines wait for each scheduler, and further ones are lost, as are lines that cannot
// be written. Lost lines are counted, and reported to the Logger of the schedulers, at most every 10 s. The file has whole lines
// only, unless the error remains. Lines of one connection are in order. When a server ends, it waits at most 1 s for its last
// lines to be written. An open connection takes about 100 bytes more, for its client's address.
package accesslog
