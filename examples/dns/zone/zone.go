// Package zone answers queries of DNS from a zone file, as an authoritative server does (RFC 1034, 1035, 2308, 6891).
package zone

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// Zone has the records of a domain. Any number of goroutines may use it.
type Zone struct {
	apex  string // with a dot at the end, in lower case
	soa   dnsmessage.Resource
	nodes map[string]*node // by name, in lower case
}

// node is a name with its records.
type node struct {
	records []dnsmessage.Resource
	cut     bool                       // another zone begins here
	answers map[dnsmessage.Type][]byte // see prepare
	nothing []byte                     // the answer for any other type
}

// kinds are the types of records.
var kinds = [...]dnsmessage.Type{dnsmessage.TypeSOA, dnsmessage.TypeNS, dnsmessage.TypeA, dnsmessage.TypeAAAA, dnsmessage.TypeCNAME,
	dnsmessage.TypeMX, dnsmessage.TypeTXT, dnsmessage.TypeSRV}

// Read reads a zone file: a record in each line, as in "www 300 IN A 192.0.2.1", and comments after ";". The types are SOA, NS, A,
// AAAA, CNAME, MX, TXT and SRV. The time to live and the class may be left out. $ORIGIN and $TTL are known, "@" is the origin, and
// a line that begins with a space has the name of the line before. There are no records over several lines, and no wildcards.
func Read(from io.Reader) (*Zone, error) {
	p := parser{zone: &Zone{nodes: map[string]*node{}}, ttl: 3600}
	lines := bufio.NewScanner(from)
	for n := 1; lines.Scan(); n++ {
		if err := p.line(lines.Text()); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return p.zone, p.zone.prepare()
}

// parser reads the lines of a zone file.
type parser struct {
	zone         *Zone
	origin, name string
	ttl          uint32
}

func (p *parser) line(text string) (err error) {
	continues := strings.HasPrefix(text, " ") || strings.HasPrefix(text, "\t")
	words, err := split(text)
	switch {
	case err != nil || len(words) == 0:
		return err
	case words[0] == "$ORIGIN" && len(words) == 2:
		p.origin, err = p.absolute(words[1])
		return err
	case words[0] == "$TTL" && len(words) == 2:
		p.ttl, err = number[uint32](words[1])
		return err
	case !continues:
		if p.name, err = p.absolute(words[0]); err != nil {
			return err
		}
		words = words[1:]
	}
	h := dnsmessage.ResourceHeader{Class: dnsmessage.ClassINET, TTL: p.ttl}
	for len(words) > 0 {
		if n, err := number[uint32](words[0]); err == nil {
			h.TTL = n
		} else if words[0] != "IN" {
			break
		}
		words = words[1:]
	}
	if len(words) < 2 || p.name == "" {
		return errors.New("no record")
	}
	if h.Name, err = dnsmessage.NewName(p.name); err != nil {
		return err
	}
	var body dnsmessage.ResourceBody
	if h.Type, body, err = p.body(words[0], words[1:]); err != nil {
		return err
	}
	return p.zone.add(dnsmessage.Resource{Header: h, Body: body})
}

// split returns the words of a line, without its comment. A word in quotes may have spaces and semicolons.
func split(line string) (words []string, err error) {
	for {
		line = strings.TrimLeft(line, " \t")
		switch {
		case line == "" || line[0] == ';':
			return words, nil
		case line[0] == '"':
			word, rest, ok := strings.Cut(line[1:], `"`)
			if !ok {
				return nil, errors.New("a quote without its end")
			}
			words, line = append(words, word), rest
		default:
			end := strings.IndexAny(line, " \t;")
			if end < 0 {
				end = len(line)
			}
			words, line = append(words, line[:end]), line[end:]
		}
	}
}

// absolute returns a name with all of its labels, in lower case.
func (p *parser) absolute(name string) (string, error) {
	name = strings.ToLower(name)
	switch {
	case strings.HasSuffix(name, "."):
		return name, nil
	case p.origin == "":
		return "", fmt.Errorf("%q, and no $ORIGIN before it", name)
	case name == "@":
		return p.origin, nil
	}
	return name + "." + strings.TrimPrefix(p.origin, "."), nil
}

// body makes the data of a record.
func (p *parser) body(kind string, words []string) (t dnsmessage.Type, b dnsmessage.ResourceBody, err error) {
	r := reader{p: p, words: words}
	switch kind {
	case "SOA":
		t, b = dnsmessage.TypeSOA, &dnsmessage.SOAResource{NS: r.name(), MBox: r.name(), Serial: value[uint32](&r),
			Refresh: value[uint32](&r), Retry: value[uint32](&r), Expire: value[uint32](&r), MinTTL: value[uint32](&r)}
	case "NS":
		t, b = dnsmessage.TypeNS, &dnsmessage.NSResource{NS: r.name()}
	case "CNAME":
		t, b = dnsmessage.TypeCNAME, &dnsmessage.CNAMEResource{CNAME: r.name()}
	case "MX":
		t, b = dnsmessage.TypeMX, &dnsmessage.MXResource{Pref: value[uint16](&r), MX: r.name()}
	case "SRV":
		t, b = dnsmessage.TypeSRV, &dnsmessage.SRVResource{Priority: value[uint16](&r), Weight: value[uint16](&r),
			Port: value[uint16](&r), Target: r.name()}
	case "TXT":
		t, b = dnsmessage.TypeTXT, &dnsmessage.TXTResource{TXT: r.words}
		r.words = nil
	case "A":
		t, b = dnsmessage.TypeA, &dnsmessage.AResource{A: r.address(netip.Addr.Is4).As4()}
	case "AAAA":
		t, b = dnsmessage.TypeAAAA, &dnsmessage.AAAAResource{AAAA: r.address(netip.Addr.Is6).As16()}
	default:
		return 0, nil, fmt.Errorf("records of type %q are not known", kind)
	}
	if len(r.words) > 0 {
		r.keep(fmt.Errorf("%q is too much", r.words[0]))
	}
	return t, b, r.err
}

// reader takes the words of a record, one after the other. The first error stays.
type reader struct {
	p     *parser
	words []string
	err   error
}

func (r *reader) word() (w string) {
	if len(r.words) == 0 {
		r.keep(errors.New("something is missing at the end"))
		return ""
	}
	w, r.words = r.words[0], r.words[1:]
	return w
}

func (r *reader) keep(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *reader) name() dnsmessage.Name {
	full, err := r.p.absolute(r.word())
	r.keep(err)
	n, err := dnsmessage.NewName(full)
	r.keep(err)
	return n
}

// address returns an address of one family.
func (r *reader) address(family func(netip.Addr) bool) netip.Addr {
	a, err := netip.ParseAddr(r.word())
	if err == nil && !family(a) {
		err = fmt.Errorf("%v is of the other family", a)
	}
	if r.keep(err); err != nil {
		return netip.IPv4Unspecified()
	}
	return a
}

func value[T uint16 | uint32](r *reader) T {
	n, err := number[T](r.word())
	r.keep(err)
	return n
}

func number[T uint16 | uint32](text string) (T, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err == nil && uint64(T(n)) != n {
		err = strconv.ErrRange
	}
	return T(n), err
}

// add adds a record. The first one has to be the SOA, whose name is the apex.
func (z *Zone) add(r dnsmessage.Resource) error {
	name := r.Header.Name.String()
	soa, is := r.Body.(*dnsmessage.SOAResource)
	switch {
	case is != (z.apex == ""):
		return errors.New("a zone has one SOA, which comes first")
	case is:
		z.apex, z.soa = name, r
		z.soa.Header.TTL = min(r.Header.TTL, soa.MinTTL) // as it is in negative answers (RFC 2308 3)
	case !inside(name, z.apex):
		return fmt.Errorf("%s is not in the zone %s", name, z.apex)
	}
	for at := name; z.nodes[at] == nil; { // names between exist as well, without records (RFC 4592 2.2.2)
		z.nodes[at] = &node{}
		if at == z.apex {
			break
		}
		at = at[strings.IndexByte(at, '.')+1:]
	}
	z.nodes[name].records = append(z.nodes[name].records, r)
	return nil
}

// inside reports whether a name is that of a zone, or below it.
func inside[S string | []byte](name S, apex string) bool {
	at := len(name) - len(apex)
	return apex == "." || at >= 0 && string(name[at:]) == apex && (at == 0 || name[at-1] == '.')
}
