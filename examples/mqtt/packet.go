package main

import (
	"bytes"
	"encoding/binary"
	"time"
	"unicode/utf8"

	"github.com/daimon-go/daimon/topic"
)

const (
	minHeader, maxHeader = 2, 5      // bytes of a fixed header (section 2.2)
	maxPacket            = 256 << 10 // bytes after it; the standard allows 256 MiB
)

// The kinds of packets (section 2.2.1).
const (
	connect, connack, publish, puback        = 1, 2, 3, 4
	subscribe, suback, unsubscribe, unsuback = 8, 9, 10, 11
	pingreq, pingresp, disconnect            = 12, 13, 14
)

// fixed has the flags of the packets that clients send. The flags of a PUBLISH vary.
var fixed = map[byte]byte{connect: 0, puback: 0, subscribe: 2, unsubscribe: 2, pingreq: 0, disconnect: 0}

// violation is what a client has broken: a section of the standard, or a rule by its number, [MQTT-x.y.z-n].
type violation string

func (v violation) Error() string { return "the client has broken MQTT-" + string(v) }

// refused has the return codes of a CONNACK (section 3.2.2.3).
var refused = map[error]uint16{violation("3.1.2-2"): 1, violation("3.1.3-8"): 2}

// packet is a packet of a client. Its body is lent, as the input is.
type packet struct {
	kind, flags byte
	body        []byte
}

// split returns the first packet of at least minHeader bytes, and how many it takes. Until they are there it has no body.
func split(in []byte) (p packet, n int, err error) {
	p.kind, p.flags = in[0]>>4, in[0]&0xf
	if want, known := fixed[p.kind]; p.kind != publish && (!known || p.flags != want) {
		return p, 0, violation("2.2.2-2")
	}
	length, size := binary.Uvarint(in[1:min(len(in), maxHeader)])
	switch n = 1 + size + int(length); {
	case size == 0 && len(in) < maxHeader:
		n = len(in) + 1
	case size == 0 || length > maxPacket:
		err = violation("2.2.3")
	case n <= len(in):
		p.body = in[1+size : n]
	}
	return p, n, err
}

// fields reads the fields of a body, and keeps the first error.
type fields struct {
	rest []byte
	err  error
}

func (f *fields) require(kept bool, rule violation) {
	if !kept && f.err == nil {
		f.err = rule
	}
}

func (f *fields) take(n int) (taken []byte) {
	f.require(n <= len(f.rest), "2.2.3")
	n = min(n, len(f.rest))
	taken, f.rest = f.rest[:n], f.rest[n:]
	return taken
}

func (f *fields) number(n int) (v uint16) {
	for _, b := range f.take(n) {
		v = v<<8 | uint16(b)
	}
	return v
}

func (f *fields) id() uint16 {
	id := f.number(2)
	f.require(id != 0, "2.3.1-1")
	return id
}

func (f *fields) data() []byte { return f.take(int(f.number(2))) }

func (f *fields) text() string {
	b := f.data()
	f.require(utf8.Valid(b), "1.5.3-1")
	f.require(bytes.IndexByte(b, 0) < 0, "1.5.3-2")
	return string(b)
}

// name returns the name of a topic to which a client may publish. Topics that begin with $ are the broker's (section 4.7.2).
func (f *fields) name() string {
	name := f.text()
	f.require(topic.ValidName(name) && name[0] != '$', "3.3.2-2")
	return name
}

// hello is a CONNECT, without user name and password.
type hello struct {
	id        string
	clean     bool
	keepAlive time.Duration      // 0: none
	will      *topic.Publication // nil: none
}

// decodeConnect reads a CONNECT (section 3.1).
func decodeConnect(p packet) (h hello, err error) {
	f := fields{rest: p.body}
	f.require(p.kind == connect, "3.1.0-1")
	f.require(f.text() == "MQTT", "3.1.2-1")
	f.require(f.number(1) == 4, "3.1.2-2")
	flags := f.number(1)
	has := func(bit int) bool { return flags>>bit&1 == 1 }
	will, qos, retain, password, user := has(2), byte(flags>>3&3), has(5), has(6), has(7)
	f.require(!has(0), "3.1.2-3")
	f.require(will || qos == 0, "3.1.2-13")
	f.require(qos < 3, "3.1.2-14")
	f.require(will || !retain, "3.1.2-15")
	f.require(user || !password, "3.1.2-22")
	h.clean, h.keepAlive, h.id = has(1), time.Duration(f.number(2))*time.Second, f.text()
	f.require(h.clean || h.id != "", "3.1.3-8")
	if will {
		h.will = &topic.Publication{Topic: f.name(), Data: bytes.Clone(f.data()), Retain: retain, Tag: min(qos, 1)}
	}
	for range bit(user) + bit(password) {
		f.data()
	}
	f.require(len(f.rest) == 0, "2.2.3")
	return h, f.err
}

// decodePublish reads a PUBLISH (section 3.3). Its quality of service is the Tag.
func decodePublish(p packet) (m topic.Publication, id uint16, err error) {
	f := fields{rest: p.body}
	m.Tag, m.Retain = p.flags>>1&3, p.flags&1 == 1
	f.require(m.Tag < 3, "3.3.1-4")
	f.require(m.Tag < 2, "3.3.5-2") // a broker that does not take it may close the connection
	f.require(m.Tag > 0 || p.flags&8 == 0, "3.3.1-2")
	if m.Topic = f.name(); m.Tag > 0 {
		id = f.id()
	}
	m.Data = bytes.Clone(f.rest)
	return m, id, f.err
}

// decodeFilters reads a SUBSCRIBE, or an UNSUBSCRIBE, which has no qualities of service (sections 3.8 and 3.10).
func decodeFilters(p packet) (id uint16, filters []string, qos []byte, err error) {
	f := fields{rest: p.body}
	for id = f.id(); len(f.rest) > 0 && f.err == nil; {
		filters = append(filters, f.text())
		f.require(topic.ValidFilter(filters[len(filters)-1]), "4.7")
		if p.kind == subscribe {
			qos = append(qos, byte(f.number(1)))
			f.require(qos[len(qos)-1] < 3, "3.8.3-4")
		}
	}
	f.require(len(filters) > 0 || p.kind == unsubscribe, "3.8.3-3")
	f.require(len(filters) > 0, "3.10.3-2")
	return id, filters, qos, f.err
}

// encodePublish returns a PUBLISH. Without an id its quality of service is 0.
func encodePublish(m *topic.Message, id uint16, again bool) []byte {
	length := 2 + len(m.Topic) + 2*int(bit(id != 0)) + len(m.Data)
	first := byte(publish<<4) | bit(again)<<3 | bit(id != 0)<<1 | bit(m.Retained)
	out := binary.AppendUvarint(append(make([]byte, 0, maxHeader+length), first), uint64(length))
	out = append(binary.BigEndian.AppendUint16(out, uint16(len(m.Topic))), m.Topic...)
	if id != 0 {
		out = binary.BigEndian.AppendUint16(out, id)
	}
	return append(out, m.Data...)
}

// encodeAck returns any other packet of a broker. What follows the two bytes of v are the return codes of a SUBACK.
func encodeAck(kind byte, v uint16, codes ...byte) []byte {
	out := binary.AppendUvarint([]byte{kind << 4}, uint64(2+len(codes)))
	return append(binary.BigEndian.AppendUint16(out, v), codes...)
}

func bit(set bool) byte {
	if set {
		return 1
	}
	return 0
}
