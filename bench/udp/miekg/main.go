// Command miekg is a server of DNS for one zone on github.com/miekg/dns, as its documentation writes one.
package main

import (
	"flag"
	"log"
	"os"
	"runtime"
	"strings"

	"github.com/miekg/dns"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:5353", "the address of the socket")
	reactors := flag.Int("reactors", 0, "GOMAXPROCS; 0: the runtime's default")
	path := flag.String("zone", "", "the `file` with the records of the zone")
	flag.Parse()
	runtime.GOMAXPROCS(*reactors)
	f, err := os.Open(*path)
	if err != nil {
		log.Fatal(err)
	}
	records := map[dns.Question][]dns.RR{}
	z := dns.NewZoneParser(f, "", *path)
	for r, ok := z.Next(); ok; r, ok = z.Next() {
		q := dns.Question{Name: r.Header().Name, Qtype: r.Header().Rrtype, Qclass: r.Header().Class}
		records[q] = append(records[q], r)
	}
	if err := z.Err(); err != nil {
		log.Fatal(err)
	}
	answer := func(w dns.ResponseWriter, query *dns.Msg) {
		m := new(dns.Msg).SetReply(query)
		m.Authoritative, m.Compress = true, true
		q := query.Question[0]
		q.Name = strings.ToLower(q.Name)
		m.Answer = records[q]
		if err := w.WriteMsg(m); err != nil {
			log.Print(err)
		}
	}
	log.Fatal((&dns.Server{Addr: *addr, Net: "udp", Handler: dns.HandlerFunc(answer)}).ListenAndServe())
}
