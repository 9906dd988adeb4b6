package nethttp_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/daimon-go/daimon/internal/tier"
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

// Handlers that read what they like, and then answer as they like.
func TestRandomHandlers(t *testing.T) {
	requests := []string{get, "HEAD / HTTP/1.1\nHost: a\n\n", framed(6)["length"], framed(6)["chunks"], framed(50000)["length"],
		framed(50000)["chunks"], "GET / HTTP/1.0\n\n", "POST / HTTP/1.0\nConnection: keep-alive\nContent-Length: 6\n\nhello!",
		post("Connection: close\nContent-Length: 6", "hello!")}
	rounds := uint64(tier.Choose(200, 100, 5000))
	compare(t, func(s *scene) {
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
	})
}
