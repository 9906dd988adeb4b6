// Package files serves the files of an fs.FS, of a directory or of the program itself, over httpd.
//
//	public := &files.Directory{Path: "public"}
//	err := public.Reload()
//	site.Handle("GET /static/{path...}", (&files.Server{FS: public}).Serve)
//
// After a deployment that switches a link or renames the directory, call Reload again, or let SIGHUP call it as
// program.Server.Reload.
//
// It does what http.FileServerFS does in net/http: validators, conditions, ranges, index.html. It differs where a
// default of FileServerFS has surprised its users: directories are not listed, names that begin with a dot are not
// served, content types come from a table, not from the system or from the content, "/index.html" is a file like any
// other, and "/file/" names no file.
//
// # What is done where
//
// A goroutine of the executor finds the file, opens it, and reads it if it has at most 64 KiB. A larger *os.File is sent by
// Response.SendFile, at most 512 KiB in a turn, on the scheduler's thread: it should not be on a disk that takes seconds. Any
// other large fs.File is read on another goroutine in pieces of 64 KiB. It should be an io.ReaderAt or an io.Seeker, as the
// files of embed and os are; otherwise it has no ranges.
//
// # What a client is told
//
//	200, 206   Content-Type, X-Content-Type-Options, Accept-Ranges; ETag and Last-Modified, if the time is known
//	301        to a directory, with a slash at its end
//	304, 412   by the conditions of RFC 9110 13
//	403        the file system denies access
//	404        no such file; a directory without an index; no regular file; a path that names no file (see below)
//	405        neither GET nor HEAD
//	416        the range is not in the file
//	500        any other error of the file system, which goes to the log of the scheduler and not to the client
//
// A request for several ranges gets the whole file. If a file becomes shorter while it is sent, the connection is aborted,
// so that no client believes it to be complete. A file that is written in place meanwhile arrives as a mixture: replace
// files by renaming new ones over them, and a download that has begun gets all of the old one.
//
// # Paths
//
// A path is decoded once. It names no file if it has an escaped slash or backslash, NUL, bytes that are not UTF-8, an
// empty segment, "." or "..", or, unless Server.Hidden is set, a segment that begins with a dot. So the FS is only asked
// for names that fs.ValidPath allows. Whether a symbolic link may lead out of it depends on the FS: Directory and os.Root
// prevent that, os.DirFS does not.
package files
