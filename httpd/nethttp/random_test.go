package nethttp_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/daimon-go/daimon/internal/tier"
)

// A step is something that a handler does.
type step struct {
	name string
	do   func(s *scene, w http.ResponseWriter, r *http.Request)
}

// drawRead draws a step that reads the body.
func drawRead(random *rand.Rand) step {
	if random.IntN(3) == 0 {
		return step{"close", func(s *scene, _ http.ResponseWriter, r *http.Request) { s.say("%v", r.Body.Close()) }}
	}
	n := [...]int{0, 1, 5, 6, 100000}[random.IntN(5)]
	return step{fmt.Sprint("read ", n), func(s *scene, _ http.ResponseWriter, r *http.Request) { s.read(r.Body, n) }}
}

// drawAnswer draws a step that answers. What the two servers do differently on purpose is left out.
func drawAnswer(random *rand.Rand) step {
	pick := func(words ...string) string { return words[random.IntN(len(words))] }
	number := func(numbers ...int) int { return numbers[random.IntN(len(numbers))] }
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
		return step{fmt.Sprintf("%s: %q", name, value), func(_ *scene, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(name, value)
		}}
	case 2:
		code := number(200, 201, 204, 304, 404, 500, 103)
		return step{fmt.Sprint("status ", code), func(_ *scene, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }}
	case 3, 4:
		n := number(0, 1, 9, 10, 100, 5000, 20000)
		return step{fmt.Sprint("write ", n), func(s *scene, w http.ResponseWriter, _ *http.Request) {
			s.write(w, strings.Repeat("<html>", n)[:n])
		}}
	default:
		return step{"flush", func(_ *scene, w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() }}
	}
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
			var steps []step
			for range random.IntN(4) {
				steps = append(steps, drawRead(random))
			}
			for range random.IntN(8) {
				steps = append(steps, drawAnswer(random))
			}
			for _, step := range steps {
				s.note("%s", step.name)
			}
			s.handleFunc(func(w http.ResponseWriter, r *http.Request) {
				for _, step := range steps {
					step.do(s, w, r)
				}
			})
			s.talk(request, random.IntN(2) == 0)
			s.curtain()
		}
	})
}
