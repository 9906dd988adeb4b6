package coro_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/internal/servertest"
)

// shouters are handlers that answer each line in capitals.
var shouters = map[string]func(*coro.Conn) error{
	"bufio.Scanner": func(c *coro.Conn) error {
		lines := bufio.NewScanner(c)
		for lines.Scan() {
			if _, err := fmt.Fprintf(c, "%s\n", bytes.ToUpper(lines.Bytes())); err != nil {
				return err
			}
		}
		return lines.Err()
	},
	"bufio.ReadWriter": func(c *coro.Conn) error {
		rw := bufio.NewReadWriter(bufio.NewReader(c), bufio.NewWriter(c))
		for {
			line, err := rw.ReadString('\n')
			if err != nil {
				return err
			}
			if _, err := rw.WriteString(strings.ToUpper(line)); err != nil {
				return err
			}
			if err := rw.Flush(); err != nil {
				return err
			}
		}
	},
	"fmt.Fscanln": func(c *coro.Conn) error {
		for {
			var line string
			if _, err := fmt.Fscanln(c, &line); err != nil {
				return err
			}
			if _, err := fmt.Fprintln(c, strings.ToUpper(line)); err != nil {
				return err
			}
		}
	},
}

func TestLinesAreReadWithWhatReadsLines(t *testing.T) {
	for name, body := range shouters {
		for _, network := range networks {
			t.Run(name+" over "+network, func(t *testing.T) {
				v := serve(t, network, body)
				c := v.dial()
				servertest.Send(t, c, "hello\n")
				servertest.Expect(t, c, "HELLO\n")
				for _, b := range "letter_by_letter\n" {
					servertest.Send(t, c, string(b))
					time.Sleep(100 * time.Microsecond)
				}
				servertest.Expect(t, c, "LETTER_BY_LETTER\n")
				servertest.Send(t, c, "two\nat_once\nand_")
				servertest.Expect(t, c, "TWO\n")
				servertest.Send(t, c, "more\n")
				require.NoError(t, c.(interface{ CloseWrite() error }).CloseWrite())
				servertest.Expect(t, c, "AT_ONCE\nAND_MORE\n")
				servertest.ExpectEOF(t, c)
				v.drain()
			})
		}
	}
}

// web answers each request with its body.
func web(rw io.ReadWriter) error {
	r := bufio.NewReader(rw)
	for {
		request, err := http.ReadRequest(r)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return err
		}
		answer := http.Response{
			StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Request: request, Close: request.Close,
			Header:        http.Header{"X-Path": {request.URL.Path}},
			ContentLength: int64(len(body)),
			Body:          io.NopCloser(bytes.NewReader(body)),
		}
		if err := answer.Write(rw); err != nil || request.Close {
			return err
		}
	}
}

func TestNetHTTPsRequestsAndAnswers(t *testing.T) {
	v := serve(t, "tcp", func(c *coro.Conn) error { return web(c) })
	transport := &http.Transport{}
	client := &http.Client{Transport: transport, Timeout: servertest.Timeout}
	for _, size := range []int{0, 1, 5000, 1 << 20} {
		for _, chunked := range []bool{false, true} {
			data := noise(size)
			var body io.Reader = bytes.NewReader(data)
			if chunked {
				body = struct{ io.Reader }{body}
			}
			r, err := client.Post(fmt.Sprintf("http://%v/%d", v.address(), size), "", body)
			require.NoError(t, err)
			got, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			require.True(t, bytes.Equal(data, got))
			require.Equal(t, fmt.Sprint("/", size), r.Header.Get("X-Path"))
			require.NoError(t, r.Body.Close())
		}
	}
	require.Equal(t, 1, v.socket.Open(), "all over one connection")
	transport.CloseIdleConnections()
	v.drain()
}
