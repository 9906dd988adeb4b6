// Command bare is the bare sends of a publication, as a yardstick: each of two goroutines writes what a connection has published to
// every second subscriber, by write(2). It speaks as much MQTT as the load generator needs, knows no topics, and a socket that
// refuses bytes ends it.
package main

import (
	"bytes"
	"log"
	"net"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/bench/internal/goserver"
)

var (
	posts       [2]chan []byte
	mu          sync.RWMutex
	subscribers []net.Conn
	descriptors []uintptr // theirs
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
	for in := make([]byte, 64<<10); ; {
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
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { descriptors = append(descriptors, fd) })
	}
	if err != nil {
		log.Fatal(err)
	}
	subscribers = append(subscribers, c)
}

func send(half int) {
	for p := range posts[half] {
		mu.RLock()
		for i := half; i < len(descriptors); i += len(posts) {
			n, _, err := unix.RawSyscall(unix.SYS_WRITE, descriptors[i], uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
			if int(n) != len(p) {
				log.Fatal("write: ", err)
			}
		}
		mu.RUnlock()
	}
}
