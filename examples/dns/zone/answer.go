package zone

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	headerLen = 12
	leastSize = 512  // that any client takes over UDP (RFC 1035 2.3.4)
	mostSize  = 1232 // that is not fragmented on any usual way: what we say of ourselves, and send over UDP at most
	optLen    = 11   // of an OPT record without options (RFC 6891 6.1.2)
)

// The bits of the second 16 bits of a header (RFC 1035 4.1.1).
const (
	response  = 1 << 15
	truncated = 1 << 9
	wished    = 1 << 8 // recursion is desired: it is repeated
)

// query is what a client asks.
type query struct {
	header   dnsmessage.Header
	name     []byte // in lower case
	kind     dnsmessage.Type
	question []byte // as it came: its name is repeated with the same case
	size     int    // of the longest answer
	extended bool   // by EDNS
}

// Answer appends the answer to a message. Over UDP an answer that is too long for the client is cut, and the client asks again
// over TCP. Nothing is appended for what is not a query. Any goroutine may call it.
func (z *Zone) Answer(to, message []byte, udp bool) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(message)
	if err != nil || h.Response { // an answer to an answer would go on for ever
		return to
	}
	var letters [255]byte
	q := query{header: h, size: leastSize, name: letters[:]}
	code := q.parse(&p, message)
	if q.size = min(max(q.size, leastSize), mostSize); !udp {
		q.size = 1<<16 - 1
	}
	if code != dnsmessage.RCodeSuccess || !inside(q.name, z.apex) {
		return q.send(to, nil, cmp.Or(code, dnsmessage.RCodeRefused))
	}
	return q.send(to, z.find(&q), code)
}

// parse reads the question, and what the client says of itself. It returns why the query has no answer.
func (q *query) parse(p *dnsmessage.Parser, message []byte) dnsmessage.RCode {
	asked, err := p.Question()
	if err != nil || p.SkipAllQuestions() != nil || binary.BigEndian.Uint16(message[4:]) != 1 {
		return dnsmessage.RCodeFormatError
	}
	end := headerLen + 1 + 4
	if asked.Name.Length > 1 { // not the root
		end += int(asked.Name.Length)
	}
	if len(message) < end || message[headerLen] >= 0xc0 { // a name that refers to another place
		return dnsmessage.RCodeFormatError
	}
	q.question, q.kind = message[headerLen:end], asked.Type
	q.name = q.name[:copy(q.name, asked.Name.Data[:asked.Name.Length])]
	for i, c := range q.name {
		if 'A' <= c && c <= 'Z' {
			q.name[i] = c + 'a' - 'A'
		}
	}
	version, err := q.options(p)
	switch {
	case err != nil:
		return dnsmessage.RCodeFormatError
	case version != 0:
		return badVersion
	case q.header.OpCode != 0:
		return dnsmessage.RCodeNotImplemented
	case asked.Class != dnsmessage.ClassINET:
		return dnsmessage.RCodeRefused
	}
	return dnsmessage.RCodeSuccess
}

// badVersion is BADVERS. The lower four bits of a code are in the header, and the others in the OPT record (RFC 6891 6.1.3).
const badVersion dnsmessage.RCode = 16

var errTwice = errors.New("zone: two OPT records")

// options finds the OPT record of EDNS.
func (q *query) options(p *dnsmessage.Parser) (version byte, err error) {
	if err = p.SkipAllAnswers(); err == nil {
		err = p.SkipAllAuthorities()
	}
	for err == nil {
		var h dnsmessage.ResourceHeader
		h, err = p.AdditionalHeader()
		switch {
		case err == dnsmessage.ErrSectionDone:
			return version, nil
		case err != nil:
			return 0, err
		case h.Type == dnsmessage.TypeOPT && q.extended:
			return 0, errTwice
		case h.Type == dnsmessage.TypeOPT:
			q.extended, q.size, version = true, int(h.Class), byte(h.TTL>>16)
		}
		err = p.SkipAdditional()
	}
	return 0, err
}

// send appends an answer, with the ID and the question of this query. Without an answer it sends the code alone.
func (q *query) send(to, answer []byte, code dnsmessage.RCode) []byte {
	at := len(to)
	to = append(to, make([]byte, headerLen)...)
	to = append(to, q.question...)
	bits := response | uint16(q.header.OpCode)<<11 | uint16(code)&0xf
	var counts [3]uint16 // answers, authorities, additional records
	if answer != nil {
		bits |= binary.BigEndian.Uint16(answer[2:])
		if rest := answer[len(q.question)+headerLen:]; len(to)-at+len(rest)+optLen <= q.size {
			to = append(to, rest...)
			for i := range counts {
				counts[i] = binary.BigEndian.Uint16(answer[6+2*i:])
			}
		} else {
			bits |= truncated
		}
	}
	if q.header.RecursionDesired {
		bits |= wished
	}
	if q.extended {
		counts[2]++
		to = append(to, 0, 0, byte(dnsmessage.TypeOPT), mostSize>>8, mostSize&0xff, byte(code>>4), 0, 0, 0, 0, 0)
	}
	h := to[at:]
	binary.BigEndian.PutUint16(h, q.header.ID)
	binary.BigEndian.PutUint16(h[2:], bits)
	if len(q.question) > 0 {
		h[5] = 1
	}
	for i, n := range counts {
		binary.BigEndian.PutUint16(h[6+2*i:], n)
	}
	return to
}

// find returns the answer, with another ID, and with the name of the question in lower case.
func (z *Zone) find(q *query) []byte {
	switch at, n := z.cut(q.name), z.nodes[string(q.name)]; {
	case at != "":
		return pack(string(q.name), q.kind, z.referral(at))
	case n == nil:
		return pack(string(q.name), q.kind, z.negative(dnsmessage.RCodeNameError))
	case n.answers[q.kind] != nil:
		return n.answers[q.kind]
	default:
		return n.nothing
	}
}

// cut returns the highest name, from a name of the zone up to the apex, that belongs to another zone; "" if there is none.
func (z *Zone) cut(name []byte) (at string) {
	for len(name) > len(z.apex) {
		if n := z.nodes[string(name)]; n != nil && n.cut {
			at = string(name)
		}
		name = name[bytes.IndexByte(name, '.')+1:]
	}
	return at
}

// referral names the servers of another zone below, and their addresses if they are known here (RFC 1034 4.3.2).
func (z *Zone) referral(at string) (m dnsmessage.Message) {
	m.Authorities = z.of(at, dnsmessage.TypeNS)
	for _, r := range m.Authorities {
		server := strings.ToLower(r.Body.(*dnsmessage.NSResource).NS.String())
		m.Additionals = append(append(m.Additionals, z.of(server, dnsmessage.TypeA)...), z.of(server, dnsmessage.TypeAAAA)...)
	}
	return m
}

// negative is the answer that a name, or its type, does not exist. The SOA says for how long (RFC 2308 3).
func (z *Zone) negative(code dnsmessage.RCode) dnsmessage.Message {
	return dnsmessage.Message{Header: dnsmessage.Header{RCode: code, Authoritative: true}, Authorities: []dnsmessage.Resource{z.soa}}
}

// of returns the records of a name and a type.
func (z *Zone) of(name string, kind dnsmessage.Type) (all []dnsmessage.Resource) {
	if n := z.nodes[name]; n != nil {
		for _, r := range n.records {
			if r.Header.Type == kind {
				all = append(all, r)
			}
		}
	}
	return all
}

// prepare makes the answers for all names of the zone.
func (z *Zone) prepare() error {
	if z.apex == "" {
		return errors.New("a zone without an SOA")
	}
	for name, n := range z.nodes {
		n.cut = name != z.apex && len(z.of(name, dnsmessage.TypeNS)) > 0
		n.answers = map[dnsmessage.Type][]byte{}
		for _, kind := range kinds {
			m := dnsmessage.Message{Header: dnsmessage.Header{Authoritative: true}, Answers: z.chain(name, kind)}
			if len(m.Answers) > 0 {
				n.answers[kind] = pack(name, kind, m)
			}
		}
		n.nothing = pack(name, 0, z.negative(dnsmessage.RCodeSuccess))
		if aliases := z.chain(name, 0); len(aliases) > 0 {
			n.nothing = pack(name, 0, dnsmessage.Message{Header: dnsmessage.Header{Authoritative: true}, Answers: aliases})
		}
		for _, answer := range n.answers {
			if answer == nil {
				return fmt.Errorf("%s has too many records", name)
			}
		}
	}
	return nil
}

// chain returns the records of a type, after the aliases that lead to them.
func (z *Zone) chain(name string, kind dnsmessage.Type) (all []dnsmessage.Resource) {
	for range 8 { // a loop of aliases ends
		alias := z.of(name, dnsmessage.TypeCNAME)
		if len(alias) == 0 || kind == dnsmessage.TypeCNAME {
			break
		}
		all = append(all, alias[0])
		name = strings.ToLower(alias[0].Body.(*dnsmessage.CNAMEResource).CNAME.String())
	}
	return append(all, z.of(name, kind)...)
}

// pack returns a message as bytes, nil if it is too long.
func pack(name string, kind dnsmessage.Type, m dnsmessage.Message) []byte {
	m.Questions = []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}}
	p, err := m.Pack()
	if err != nil || len(p) > 1<<16-1-optLen {
		return nil
	}
	return p
}
