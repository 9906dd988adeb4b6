package files_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing/fstest"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/files"
	"github.com/daimon-go/daimon/service"
)

// A tree of files below "/static/". Usually it is that of an os.Root, or is embedded.
func ExampleServer() {
	tree := fstest.MapFS{
		"hello.txt":       {Data: []byte("Hello, World!"), ModTime: time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)},
		"docs/index.html": {Data: []byte("<h1>docs</h1>")},
		".env":            {Data: []byte("PASSWORD=swordfish")},
	}
	var site httpd.Mux
	site.Handle("/static/{path...}", (&files.Server{FS: tree}).Serve)

	tcp := &service.Listener{Address: "127.0.0.1:0", Handler: (&httpd.Server{Handler: site.Serve}).Serve}
	ctx, cancel := context.WithCancel(context.Background())
	client := func(s *act.Scheduler) error {
		go func() {
			defer cancel()
			at := "http://" + tcp.Addr().String() + "/static/"
			get(at+"hello.txt", "")
			get(at+"hello.txt", "bytes=-6")
			get(at+"docs", "") // is sent on to "docs/"
			get(at+".env", "")
		}()
		return nil
	}
	fmt.Println(act.Run(ctx, act.Config{Schedulers: 1}, tcp.Setup, client))
	// Output:
	// 200 Hello, World! <nil>
	// 206 World! <nil>
	// 200 <h1>docs</h1> <nil>
	// 404 404 Not Found <nil>
	// <nil>
}

// get prints what a server says.
func get(url, part string) {
	req, err := http.NewRequest("GET", url, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	req.Close = true
	if part != "" {
		req.Header.Set("Range", part)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	fmt.Println(res.StatusCode, strings.TrimSpace(string(body)), err)
}
