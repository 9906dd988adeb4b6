// Command bare is the bare sends of a publication, as a yardstick: what a connection publishes goes to the two halves of the
// subscribers, and each half has a goroutine that writes the same bytes to one socket after the other, by write(2). It speaks as
// much MQTT as the load generator needs, knows no topics, and a socket that refuses bytes ends it.
package main

import (
	"bytes"
	"log"
	"net"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/bench/internal/goserver"
)

var (
	mu    sync.RWMutex
	all   []net.Conn   // the subscribers
	half  [2][]uintptr // their descriptors
	posts [2]chan []byte
)

func main() {
	l := goserver.Listen()
	for i := range posts {
		posts[i] = make(chan []byte)
		go send(i)
	}
	for {
		c, err := l.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go serve(c)
	}
}

// serve answers CONNECT and SUBSCRIBE, each of which is one read. What follows a SUBSCRIBE is not read.
func serve(c net.Conn) {
	in := make([]byte, 64<<10)
	for {
		n, err := c.Read(in)
		if err != nil {
			return
		}
		switch in[0] >> 4 {
		case 1: // CONNECT
			_, _ = c.Write([]byte{0x20, 2, 0, 0})
		case 8: // SUBSCRIBE
			subscribe(c)
			_, _ = c.Write([]byte{0x90, 3, in[2], in[3], 0})
			return
		default: // PUBLISH
			message := bytes.Clone(in[:n])
			for _, p := range posts {
				p <- message
			}
		}
	}
}

func subscribe(c net.Conn) {
	mu.Lock()
	defer mu.Unlock()
	h := &half[len(all)%len(half)]
	all = append(all, c)
	raw, err := c.(syscall.Conn).SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { *h = append(*h, fd) })
	}
	if err != nil {
		log.Fatal(err)
	}
}

// send sends what is posted to a half.
func send(i int) {
	for p := range posts[i] {
		mu.RLock()
		for _, fd := range half[i] {
			n, _, err := unix.RawSyscall(unix.SYS_WRITE, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
			if int(n) != len(p) {
				log.Fatal("write: ", err)
			}
		}
		mu.RUnlock()
	}
}
