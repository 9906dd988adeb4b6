// Package files serves the files of an fs.FS, of a directory or of the program itself, over httpd.
//
//	root, err := os.OpenRoot("public")
//	public := &files.Server{FS: root.FS()}
//	site.Handle("GET /static/{path...}", public.Serve)
//
// It is what http.FileServerFS is to net/http: validators, conditions, ranges, index.html. It differs where a default
// of that one has surprised somebody: there are no listings of directories, nothing that begins with a dot is served,
// types are those of a table and neither those of the system nor guessed, "/index.html" is a file like any other, and
// "/file/" is none.
//
// # What is done where
//
// Whatever asks the file system runs on the executor: a goroutine looks for the file, opens it, and if it has at most
// 64 KiB reads it, so that most requests are off the scheduler's thread once. A larger *os.File then goes out by
// Response.SendFile, at most 512 KiB of it in a turn, which is why it should not be on a disk that takes seconds. Any
// other fs.File is read in pieces of 64 KiB, one at a time, off the thread; it should be an io.ReaderAt or an
// io.Seeker, as those of embed and os are. Of one that is neither there are no ranges.
//
// # What a client is told
//
//	200, 206   Content-Type, X-Content-Type-Options, Accept-Ranges; ETag and Last-Modified, if the time is known
//	301        to a directory, with its slash
//	304, 412   by the conditions of RFC 9110 13
//	403        the file system denies it
//	404        no such file; a directory without an index; no regular file; a path that can be the name of none: see below
//	405        neither GET nor HEAD
//	416        no range of it can be had
//	500        any other error of the file system, which is reported to the log of the scheduler and not to the client
//
// Of ranges there are at most 16, together not more than the file; who asks for more gets the whole file. A file that
// becomes shorter while it is sent ends the connection, so no client takes it for whole. One that is written in place
// meanwhile arrives as a mixture: replace files by renaming new ones over them, and who has begun to get the old one
// gets all of it.
//
// # Paths
//
// A path is decoded once. It is nobody's if it has an escaped slash or backslash, NUL, octets that are not UTF-8, an
// empty segment or one of "." and ".."; and, unless Server.Hidden says otherwise, a segment that begins with a dot. So
// the FS is only asked for names that fs.ValidPath allows. Whether a symbolic link leads out of it is for the FS to
// say: os.Root does, os.DirFS does not.
package files
