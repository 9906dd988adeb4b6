// Command httpd is a web server.
//
//	go run ./examples/httpd -root docs
//	curl http://127.0.0.1:8080/
//	curl --data-binary @README.md http://127.0.0.1:8080/echo
//	curl http://127.0.0.1:8080/files/simulation.md
//
// With TLS, and a certificate that nobody vouches for:
//
//	go run ./examples/httpd -tls-self
//	curl -k https://127.0.0.1:8080/
//
// Ctrl-C ends it in order: idle connections are closed, and requests that have begun are answered, within -drain. A
// second Ctrl-C ends it at once.
package main

import (
	"flag"
	"io/fs"
	"os"

	"github.com/daimon-go/daimon/examples/httpd/web"
	"github.com/daimon-go/daimon/examples/internal/withtls"
	"github.com/daimon-go/daimon/httpd"
)

func main() {
	var files fs.FS
	flag.Func("root", "a `directory` whose files are served under /files/; no link leads out of it", func(dir string) error {
		root, err := os.OpenRoot(dir)
		if err == nil {
			files = root.FS()
		}
		return err
	})
	server := withtls.Parse("127.0.0.1:8080", "http/1.1", "http/1.0")
	site := &httpd.Server{Handler: web.Site(files).Serve, MaxBody: 1 << 30}
	server.Run(server.Listen(server.Addr, site.Serve))
}
