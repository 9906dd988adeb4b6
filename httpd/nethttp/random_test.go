package nethttp_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/tier"
)

// drawRead draws a step that reads the body.
func drawRead(random *rand.Rand) string {
	if random.IntN(3) == 0 {
		return "close"
	}
	return fmt.Sprint("read ", [...]int{0, 1, 5, 6, 100000}[random.IntN(5)])
}

// drawAnswer draws a step that answers. What the two servers do differently on purpose is left out.
func drawAnswer(random *rand.Rand) string {
	pick := func(words ...string) string { return words[random.IntN(len(words))] }
	switch random.IntN(6) {
	case 0, 1:
		name := pick("A", "Content-Type", "Content-Encoding", "Connection", "Trailer", "Sum", "Cache-Control")
		value := pick("1", "2 3", "4\n5", " 6")
		switch name {
		case "Connection":
			value = "close"
		case "Trailer":
			value = pick("Sum", "Sum, More")
		}
		return fmt.Sprintf("set %s: %s", name, value)
	case 2:
		return pick("status 200", "status 201", "status 204", "status 304", "status 404", "status 500", "status 103")
	case 3, 4:
		return pick("fill 0", "fill 1", "fill 9", "fill 10", "fill 100", "fill 5000", "fill 20000")
	}
	return "flush"
}

// drawRequest draws a request that both servers take.
func drawRequest(random *rand.Rand) string {
	pick := func(words ...string) string { return words[random.IntN(len(words))] }
	version := pick("1.1", "1.1", "1.1", "1.0")
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/%s\nHost: %s\n", pick("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "get", "M-SEARCH"),
		pick("/", "/a/b?c=d&e", "//a/../b", "/%41%2f", "/?", "http://b:80/c?d"), version, pick("a", "b.c:80", "[::1]", "1.2.3.4"))
	for range random.IntN(5) {
		fmt.Fprintf(&b, "%s:%s%s\n", pick("A", "a-b", "ACCEPT", "Cookie", "X_Y", "Range", "Trailer", "Te", "Upgrade", "Pragma", "Keep-Alive"),
			pick("", " ", "\t "), pick("1", "b, c", "no-cache", "a=b; c=\"d\"", "bytes=0-", "\xe4\t!", "h2c", "Sum", ""))
	}
	for range random.IntN(2) {
		fmt.Fprintf(&b, "Connection: %s\n", pick("close", "keep-alive", "Keep-Alive, A", "a ,CLOSE", "upgrade", ""))
	}
	text := strings.Repeat("0123456789abcdef", 1000)[:random.IntN(6)*random.IntN(3000)]
	switch {
	case random.IntN(3) == 0:
		b.WriteString("\n")
	case version == "1.0" || random.IntN(2) == 0:
		fmt.Fprintf(&b, "Content-Length: %d\n\n%s", len(text), text)
	default:
		b.WriteString("transfer-encoding: Chunked\n\n")
		for len(text) > 0 {
			n := 1 + random.IntN(len(text))
			fmt.Fprintf(&b, pick("%x", "0%X", "%x;a=b")+"\n%s\n", n, text[:n])
			text = text[n:]
		}
		b.WriteString("0\n" + pick("", "Sum: 1\n", "Sum: 1\nB: 2\nsum: 3\n") + "\n")
	}
	return b.String()
}

// Requests as clients like them, one or some of them on a connection.
func TestRandomRequests(t *testing.T) {
	rounds := uint64(tier.Choose(200, 100, 20000))
	compare(t, func(s *scene) {
		for seed := range rounds {
			random := rand.New(rand.NewPCG(seed, 34))
			all := []string{drawRequest(random)}
			for random.IntN(2) == 0 {
				all = append(all, drawRequest(random))
			}
			s.part(fmt.Sprintf("%d %.300q", seed, all))
			s.handleFunc(s.describe)
			s.talk(strings.Join(all, "¶"), random.IntN(2) == 0)
			s.curtain()
		}
	})
}

// Handlers that read what they like, and then answer as they like.
func TestRandomHandlers(t *testing.T) {
	requests := []string{get, "HEAD / HTTP/1.1\nHost: a\n\n", framed(6)["length"], framed(6)["chunks"], framed(50000)["length"],
		framed(50000)["chunks"], "GET / HTTP/1.0\n\n", post("Connection: close\nContent-Length: 6", "hello!"),
		"POST / HTTP/1.0\nConnection: keep-alive\nContent-Length: 6\n\nhello!"} // which Inline has its own answers to
	rounds := uint64(tier.Choose(100, 100, 5000))
	play := func(s *scene) {
		for seed := range rounds {
			random := rand.New(rand.NewPCG(seed, 19))
			request := requests[random.IntN(len(requests))]
			line, _, _ := strings.Cut(request, "\n")
			s.part(fmt.Sprint(seed, " ", line))
			var steps []string
			if strings.Contains(request, "chunked") { // of such a body that is not read to its end, a flushed answer may be the last
				steps = append(steps, "read 100000")
			}
			for range random.IntN(4) {
				steps = append(steps, drawRead(random))
			}
			for range random.IntN(8) {
				steps = append(steps, drawAnswer(random))
			}
			text := strings.Join(steps, "; ")
			s.note("%q", text)
			s.handleFunc(func(w http.ResponseWriter, r *http.Request) { does(text)(s, w, r) })
			s.talk(request, random.IntN(2) == 0)
			s.curtain()
		}
	}
	for _, w := range worlds { // large answers go other ways with TLS
		w.compare(t, play)
	}
	requests = requests[:len(requests)-1]
	require.Equal(t, unframed(run(t, worlds[0].theirs, play)), unframed(run(t, worlds[0].inline, play)))
}
