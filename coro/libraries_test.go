package coro_test

import (
	"bufio"
	"bytes"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/rpc"
	"net/smtp"
	"net/textproto"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
)

// message is what the libraries carry.
type message struct {
	Name  string
	Bytes []byte
}

// The package documentation lists these. Each serves in a coroutine, to the same library over package net.
func TestLibrariesThatMakeAllCallsInTheCoroutine(t *testing.T) {
	sent := message{"noise", noise(300_000)}
	for _, row := range []struct {
		name          string
		serve, client func(c net.Conn) error
	}{
		{
			"bufio",
			func(c net.Conn) error {
				rw := bufio.NewReadWriter(bufio.NewReader(c), bufio.NewWriter(c))
				line, err := rw.ReadString('\n')
				if err == nil {
					_, err = rw.WriteString(line)
				}
				return errors.Join(err, rw.Flush())
			},
			func(c net.Conn) error {
				if _, err := fmt.Fprintln(c, "a line"); err != nil {
					return err
				}
				line, err := bufio.NewReader(c).ReadString('\n')
				return same(err, line, "a line\n")
			},
		},
		{
			"net/textproto",
			func(c net.Conn) error {
				conn := textproto.NewConn(c)
				header, err := conn.ReadMIMEHeader()
				if err != nil {
					return err
				}
				w := conn.DotWriter()
				_, err = io.WriteString(w, header.Get("Name"))
				return errors.Join(err, w.Close())
			},
			func(c net.Conn) error {
				conn := textproto.NewConn(c)
				if err := conn.PrintfLine("name: %s\r\n", sent.Name); err != nil {
					return err
				}
				got, err := conn.ReadDotBytes()
				return same(err, string(got), sent.Name+"\n")
			},
		},
		{
			"encoding/gob",
			func(c net.Conn) error {
				var m message
				if err := gob.NewDecoder(c).Decode(&m); err != nil {
					return err
				}
				return gob.NewEncoder(c).Encode(m)
			},
			func(c net.Conn) error {
				if err := gob.NewEncoder(c).Encode(sent); err != nil {
					return err
				}
				var m message
				err := gob.NewDecoder(c).Decode(&m)
				return same(err, string(m.Bytes), string(sent.Bytes))
			},
		},
		{
			"encoding/json",
			func(c net.Conn) error {
				var m message
				if err := json.NewDecoder(c).Decode(&m); err != nil {
					return err
				}
				return json.NewEncoder(c).Encode(m)
			},
			func(c net.Conn) error {
				if err := json.NewEncoder(c).Encode(sent); err != nil {
					return err
				}
				var m message
				err := json.NewDecoder(c).Decode(&m)
				return same(err, string(m.Bytes), string(sent.Bytes))
			},
		},
		{
			"mime/multipart",
			func(c net.Conn) error {
				part, err := multipart.NewReader(c, "edge").NextPart()
				if err != nil {
					return err
				}
				_, err = io.Copy(c, part)
				return err
			},
			func(c net.Conn) error {
				w := multipart.NewWriter(c)
				_ = w.SetBoundary("edge")
				part, err := w.CreatePart(nil)
				if err == nil {
					_, err = part.Write(sent.Bytes[:30_000])
				}
				if err = errors.Join(err, w.Close()); err != nil {
					return err
				}
				got, err := io.ReadAll(c)
				return same(err, string(got), string(sent.Bytes[:30_000]))
			},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			v := serve(t, "tcp", func(c *coro.Conn) error { return row.serve(c) })
			c := v.dial()
			require.NoError(t, row.client(c))
			require.NoError(t, c.Close())
			v.drain()
		})
	}
}

func same(err error, got, want string) error {
	if err == nil && got != want {
		err = fmt.Errorf("%d bytes came back as %d others", len(want), len(got))
	}
	return err
}

func TestNetSMTPsClientInACoroutine(t *testing.T) {
	post := serve(t, "tcp", func(c *coro.Conn) error {
		conn := textproto.NewConn(c)
		_ = conn.PrintfLine("220 ready")
		for {
			line, err := conn.ReadLine()
			if err != nil {
				return err
			}
			switch line {
			case "DATA":
				_ = conn.PrintfLine("354 go on")
				letter, err := conn.ReadDotBytes()
				if err != nil {
					return err
				}
				_ = conn.PrintfLine("250 %q", letter)
			case "QUIT":
				return conn.PrintfLine("221 bye")
			default:
				_ = conn.PrintfLine("250 ok")
			}
		}
	})
	l := bench(t)
	require.NoError(t, play(l, func(co *coro.Co) error {
		c, err := coro.Dial(co, post.address(), listener.Limits{})
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		client, err := smtp.NewClient(c, "localhost")
		if err != nil {
			return err
		}
		if err := errors.Join(client.Mail("a@example.com"), client.Rcpt("b@example.com")); err != nil {
			return err
		}
		w, err := client.Data()
		if err != nil {
			return err
		}
		_, err = io.WriteString(w, "a letter")
		return errors.Join(err, w.Close(), client.Quit())
	}).end())
	post.drain()
}

// net/rpc answers each request on a goroutine of its own: it needs a Bridge.
func TestACoroutineGivesItsConnectionToNetRPC(t *testing.T) {
	server := rpc.NewServer()
	require.NoError(t, server.RegisterName("Noise", new(echoing)))
	v := serve(t, "tcp", func(c *coro.Conn) error {
		hello := make([]byte, 5)
		if _, err := io.ReadFull(c, hello); err != nil {
			return err
		}
		return c.Co().Do(&listener.Bridge{Conn: c.Under(), F: func(c net.Conn) error {
			server.ServeConn(c)
			return nil
		}})
	})
	c := v.dial()
	servertest.Send(t, c, "hello")
	client := rpc.NewClient(c)
	require.NoError(t, together(20, func(i int) error {
		var got []byte
		err := client.Call("Noise.Echo", noise(1000*i), &got)
		return same(err, string(got), string(noise(1000*i)))
	}))
	require.NoError(t, client.Close())
	v.drain()
}

type echoing struct{}

func (*echoing) Echo(in []byte, out *[]byte) error {
	*out = bytes.Clone(in)
	return nil
}
