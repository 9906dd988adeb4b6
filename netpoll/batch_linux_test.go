package netpoll

import (
	"bytes"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/internal/testing/exectest"
)

func openBatch(t testing.TB, n int) *Batch {
	b, err := sys.OpenBatch(n)
	if err != nil {
		p := [30]uint32{2: 1 << 7} // struct io_uring_params, with the flag IORING_SETUP_SUBMIT_ALL
		_, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&p)), 0)
		require.NotZero(t, errno, "the kernel has io_uring: %v", err)
		t.Skip(err)
	}
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

// Each call does what Receive and Send do, also when the kernel has no memory for calls of io_uring: then they are made one by
// one.
func TestTheCallsOfABatch(t *testing.T) {
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<20) // more than the system takes of what nobody reads
	reset := func(peer, fd int) {
		say(t, fd, "unread")
		require.NoError(t, sys.Reset(peer))
		polled(t, fd, unix.POLLIN)
	}
	rows := []struct {
		name   string
		before func(peer, fd int)
		gone   bool   // the peer has closed
		send   []byte // nil: receive
		n      int    // -1: some of it
		err    error
	}{
		{"receive", func(peer, _ int) { say(t, peer, "hello") }, false, nil, 5, nil},
		{"nothing there", func(int, int) {}, false, nil, 0, unix.EAGAIN},
		{"the end", func(peer, _ int) { require.NoError(t, sys.CloseWrite(peer)) }, false, nil, 0, nil},
		{"bytes before the end", func(peer, _ int) { say(t, peer, "hello"); require.NoError(t, sys.Close(peer)) }, true, nil, 5, nil},
		{"a reset", reset, true, nil, 0, unix.ECONNRESET},
		{"send", func(int, int) {}, false, []byte("hello"), 5, nil},
		{"a short send", func(int, int) {}, false, large, -1, nil},
		{"a full socket", func(_, fd int) {
			for err := error(nil); err == nil; _, err = sys.Send(fd, nil, large) {
			}
		}, false, []byte("hello"), 0, unix.EAGAIN},
		{"nobody there", func(peer, fd int) {
			reset(peer, fd)
			_, err := sys.Receive(fd, make([]byte, 8))
			require.Equal(t, unix.ECONNRESET, err)
		}, true, []byte("hello"), 0, unix.EPIPE},
	}
	for how, refused := range map[string]syscall.Errno{"at once": 0, "one by one": unix.ENOMEM} {
		for network, pair := range pairs {
			t.Run(how+", "+network, func(t *testing.T) {
				balanced(t)
				b := openBatch(t, 4) // fewer than there are calls
				if refused != 0 {
					exectest.Refuse(t, unix.SYS_IO_URING_ENTER, refused)
				}
				_, errno := b.enter(0, 0)
				require.Equal(t, refused, errno)
				calls := make([]Call, len(rows), len(rows)+5)
				peers := make([]int, len(rows))
				for i, row := range rows {
					peer, fd := pair(t)
					hold(t, fd)
					if !row.gone {
						hold(t, peer)
					}
					row.before(peer, fd)
					calls[i], peers[i] = Call{FD: fd, Send: row.send != nil, P: row.send, N: -7, Err: unix.EBADF}, peer
					if row.send == nil {
						calls[i].P = make([]byte, 64)
					}
				}
				peer, twice := pair(t)
				hold(t, peer)
				hold(t, twice)
				say(t, peer, "hello")
				one, two := make([]byte, 2), make([]byte, 3)
				calls = append(calls, Call{FD: twice, P: one}, Call{FD: twice, P: two}, Call{FD: -1, P: make([]byte, 1)},
					Call{FD: twice, P: []byte("aa"), Send: true}, Call{FD: twice, P: []byte("aa"), Send: true})
				b.Do(calls)
				for i, row := range rows {
					c := &calls[i]
					require.Equal(t, row.err, c.Err, row.name)
					switch {
					case row.n < 0:
						require.Positive(t, c.N, row.name)
						require.Less(t, c.N, len(c.P), row.name)
					case c.Send && c.N > 0:
						require.Equal(t, "hello", hear(t, peers[i]), row.name)
						fallthrough
					default:
						require.Equal(t, row.n, c.N, row.name)
						require.Equal(t, "hello"[:row.n], string(c.P[:c.N]), row.name)
					}
				}
				calls = calls[len(rows):]
				require.Contains(t, []string{"hello", "lohel"}, string(one)+string(two), "the same descriptor twice, in any order")
				require.Equal(t, unix.EBADF, calls[2].Err)
				require.Equal(t, "aaaa", hear(t, peer))
			})
		}
	}
}

func TestTheReasonForNoBatchIsOneSentence(t *testing.T) {
	openBatch(t, 4)
	for errno, says := range map[syscall.Errno]string{
		unix.ENOSYS: "older than 5.1,", unix.EPERM: "kernel.io_uring_disabled", unix.EINVAL: "older than 5.18",
		unix.ENOMEM: "ulimit -l", unix.ENFILE: "too few descriptors", unix.EMFILE: "too few descriptors",
		unix.EACCES: "the kernel refuses it",
	} {
		t.Run(says, func(t *testing.T) {
			balanced(t)
			if errno == unix.EMFILE {
				var limit unix.Rlimit
				require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
				require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Max: limit.Max}))
				defer func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)) }()
			} else {
				exectest.Refuse(t, unix.SYS_IO_URING_SETUP, errno)
			}
			b, err := sys.OpenBatch(4)
			require.Nil(t, b)
			require.ErrorIs(t, err, errno)
			require.ErrorContains(t, err, says)
		})
	}
}
