package coro_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/internal/servertest"
)

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
