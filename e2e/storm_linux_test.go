package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/internal/testing/exectest"
	"github.com/daimon-go/daimon/internal/testing/tier"
)

// Clients come, talk in messages of all sizes, flood, half-close, reset, are stopped and are killed. Each byte that comes back
// is compared. The server has the race detector, with which bytes are overwritten when they are given back.
func TestStorm(t *testing.T) {
	outside(t)
	t.Parallel()
	for _, name := range []string{"echo", "httpd"} {
		t.Run(name, func(t *testing.T) {
			build := exectest.Build{Dir: "../examples/" + name, Race: true}
			s := startEcho(t, build.Command(t, "-addr", "127.0.0.1:0", "-reactors", "2", "-engine", "uring"))
			descriptors := s.Descriptors(t)
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			random, all := rand.New(rand.NewPCG(seed, 0)), []*crowd{arrive(t, s, name), arrive(t, s, name), arrive(t, s, name)}
			for range tier.Choose(0, 8, 400) {
				c := random.IntN(len(all))
				switch random.IntN(3) {
				case 0:
					all[c].Signal(t, unix.SIGKILL)
					all[c] = arrive(t, s, name)
				case 1:
					all[c].Signal(t, unix.SIGSTOP)
					all[(c+1)%len(all)].more(t)
					all[c].Signal(t, unix.SIGCONT)
				case 2:
					s.stopped(t, func() {})
				}
				all[c].more(t)
			}
			for _, c := range all {
				c.Signal(t, unix.SIGKILL)
			}
			exectest.Eventually(t, patience, "the ends of all connections", func() bool { return s.Descriptors(t) == descriptors })
			s.Stop(t)
		})
	}
}

// crowd is a process with clients. It writes a byte for each that has left, and ends with the first mistake that one has seen.
type crowd struct{ *exectest.Program }

// crowdOf is an environment variable: the dialect of a crowd, a space, and the address of the server.
const crowdOf = "E2E_CROWD"

func init() {
	if name, at, found := strings.Cut(os.Getenv(crowdOf), " "); found {
		runCrowd(dialects[name], at)
	}
}

func arrive(t *testing.T, s *server, name string) *crowd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crowdOf+"="+name+" "+s.address)
	return &crowd{exectest.Start(t, cmd)}
}

// more waits until twenty more clients have left.
func (c *crowd) more(t *testing.T) {
	left := len(c.Out())
	exectest.Eventually(t, patience, "clients", func() bool { return c.Gone() || len(c.Out()) >= left+20 })
	require.False(t, c.Gone(), c.Said())
}

// runCrowd is the program of a crowd.
func runCrowd(d dialect, at string) {
	s, failed := &server{network: "tcp", address: at}, make(chan error)
	for range 20 {
		go func() {
			for {
				if err := visit(s, d); err != nil {
					failed <- err
				}
				fmt.Print(".")
			}
		}()
	}
	fmt.Fprintln(os.Stderr, <-failed)
	os.Exit(1)
}

// dialect is how something is said so that it comes back, and how n of its bytes are heard.
type dialect struct {
	say  func(data []byte) []byte
	hear func(in *bufio.Reader, data []byte) (io.Reader, error)
}

var dialects = map[string]dialect{
	"echo": {
		func(data []byte) []byte { return data },
		func(in *bufio.Reader, data []byte) (io.Reader, error) {
			return io.LimitReader(in, int64(len(data))), nil
		},
	},
	"httpd": {
		func(data []byte) []byte {
			return append(fmt.Appendf(nil, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", len(data)), data...)
		},
		func(in *bufio.Reader, _ []byte) (io.Reader, error) {
			answer, err := http.ReadResponse(in, nil)
			if err != nil {
				return nil, err
			}
			return answer.Body, nil
		},
	},
}

// visit is a client, from its connect to its end.
func visit(s *server, d dialect) error {
	c, err := s.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	begun, in := time.Now(), bufio.NewReader(c)
	for range rand.IntN(20) {
		if err = exchange(c, in, d); err != nil {
			break
		}
	}
	how := rand.IntN(4)
	switch {
	case err != nil:
	case how == 0: // much is under way
		data := content(rand.Uint64(), 4<<20)
		go func() { _, _ = c.Write(d.say(data)) }()
		err = heard(in, d, data, 64<<10)
		reset(c)
	case how == 1: // something is not whole yet
		_, err = c.Write(d.say(content(0, 1<<10))[:rand.IntN(1<<10)])
		reset(c)
	case how == 2:
		_ = c.CloseWrite()
		if _, err = in.ReadByte(); err == nil {
			err = errGarbled
		} else if err == io.EOF {
			err = nil
		}
	}
	if time.Since(begun) > 5*time.Second && !errors.Is(err, errGarbled) {
		return nil // it was stopped, and a server need not wait
	}
	return err
}

// exchange says up to four messages at once.
func exchange(c client, in *bufio.Reader, d dialect) error {
	var all [][]byte
	var said []byte
	for range 1 + rand.IntN(4) {
		data := content(rand.Uint64(), 1+rand.IntN([]int{64, 64, 64, 3 << 10, 6 << 10, 64 << 10}[rand.IntN(6)]))
		all, said = append(all, data), append(said, d.say(data)...)
	}
	sent := make(chan error, 1)
	go func() {
		_, err := c.Write(said)
		sent <- err
	}()
	for _, data := range all {
		if err := heard(in, d, data, len(data)); err != nil {
			return err
		}
	}
	return <-sent
}

// heard wants n bytes of data back, and nothing more if that is all.
func heard(in *bufio.Reader, d dialect, data []byte, n int) error {
	answer, err := d.hear(in, data)
	if err != nil {
		return err
	}
	if n < len(data) {
		answer = io.LimitReader(answer, int64(n))
	}
	back, err := io.ReadAll(answer)
	if err == nil && !bytes.Equal(back, data[:n]) {
		err = fmt.Errorf("%w: %d of %d bytes", errGarbled, len(back), n)
	}
	return err
}
