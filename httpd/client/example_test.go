package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/httpd/client"
	"github.com/daimon-go/daimon/listener"
)

// shop is a server to call.
func shop(w http.ResponseWriter, r *http.Request) {
	content, _ := io.ReadAll(r.Body)
	_, _ = fmt.Fprintf(w, "%s %s, %d bytes\n", r.Method, r.URL.Path, len(content))
}

// run runs a task that calls the shop.
func run(task func(shop *client.Origin) act.Action) {
	server := httptest.NewServer(http.HandlerFunc(shop))
	defer server.Close()
	origin := &client.Origin{Address: server.Listener.Addr().String()}
	err := act.Run(context.Background(), act.Config{Schedulers: 1}, func(s *act.Scheduler) error {
		s.Spawn(task(origin))
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
}

// In a coroutine the calls seem to block.
func Example() {
	run(func(shop *client.Origin) act.Action {
		return coro.New(func(co *coro.Co) error {
			call := &client.Call{Origin: shop, Target: "/items/7"}
			call.Add("Accept", "text/plain")
			if err := co.Do(call); err != nil {
				return err
			}
			answer := call.Response()
			defer func() { _ = answer.Close() }()
			fmt.Println(answer.Status())
			_, err := io.Copy(os.Stdout, coro.Reader(co, answer))
			return err
		})
	})
	// Output:
	// 200
	// GET /items/7, 0 bytes
}

// item is an action that prints what the shop says of an item.
type item struct {
	call   client.Call
	answer *client.Response // nil: the call is not done
}

func (i *item) Act(t *act.Task) act.Directive {
	if i.answer == nil {
		if d := i.call.Act(t); d != act.Done {
			return d
		}
		i.answer = i.call.Response()
		fmt.Println(i.answer.Status())
	}
	in, err := i.answer.Peek() // what has come; it is lent until the turn ends
	fmt.Print(string(in))
	i.answer.Discard(len(in))
	return listener.Next(t, err)
}

// Close is called when the action has ended, however it did.
func (i *item) Close() error {
	if i.answer != nil {
		return i.answer.Close() // the connection can be used again
	}
	return i.call.Close()
}

// An action calls the Call in its turns until it is Done, and then reads the Response.
func ExampleCall() {
	run(func(shop *client.Origin) act.Action {
		return &item{call: client.Call{Origin: shop, Target: "/items/7"}}
	})
	// Output:
	// 200
	// GET /items/7, 0 bytes
}

// A content that is not in memory is written after Begin. The connection takes it as fast as the server does.
func ExampleCall_Begin() {
	run(func(shop *client.Origin) act.Action {
		return coro.New(func(co *coro.Co) error {
			call := &client.Call{Origin: shop, Method: "PUT", Target: "/items/8", Length: -1} // its length is not known
			if err := co.Do(call.Begin()); err != nil {
				return err
			}
			if _, err := io.Copy(coro.Writer(co, call), strings.NewReader("a new item")); err != nil {
				return err
			}
			if err := call.End(); err != nil {
				return err
			}
			if err := co.Do(call); err != nil {
				return err
			}
			answer := call.Response()
			defer func() { _ = answer.Close() }()
			_, err := io.Copy(os.Stdout, coro.Reader(co, answer))
			return err
		})
	})
	// Output: PUT /items/8, 10 bytes
}
