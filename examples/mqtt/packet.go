package main

import (
	"bytes"
	"encoding/binary"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/daimon-go/daimon/topic"
)

const (
	maxPacket = 256 << 10 // bytes of a packet after its fixed header; the standard allows 256 MiB
	maxHeader = 5         // bytes of a fixed header (section 2.2)
)

// kind is the type of a packet (section 2.2.1).
type kind byte

const (
	connect, connack, publish, puback        kind = 1, 2, 3, 4
	subscribe, suback, unsubscribe, unsuback kind = 8, 9, 10, 11
	pingreq, pingresp, disconnect            kind = 12, 13, 14
)

// fixed has the flags of the packets that clients send. The flags of a PUBLISH vary.
var fixed = map[kind]byte{connect: 0, puback: 0, subscribe: 2, unsubscribe: 2, pingreq: 0, disconnect: 0}

// violation is what a client has broken: a section of the standard, or a rule by its number, [MQTT-x.y.z-n].
type violation string

func (v violation) Error() string { return "the client has broken MQTT-" + string(v) }

// refusal is the return code of a CONNACK (section 3.2.2.3).
type refusal byte

const badVersion, badID refusal = 1, 2

func (refusal) Error() string { return "the client is refused" }

// packet is a packet of a client. Its body is lent, as the input is.
type packet struct {
	kind  kind
	flags byte
	body  []byte
}

// split returns the first packet of the input, and how many bytes it takes. Until they are there it has no body.
func split(in []byte) (p packet, n int, err error) {
	if len(in) == 0 {
		return p, 2, nil
	}
	p.kind, p.flags = kind(in[0]>>4), in[0]&0xf
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

// fields reads the fields of a body. It keeps the first error.
type fields struct {
	rest []byte
	err  error
}

// require sets the error if a rule is broken.
func (f *fields) require(kept bool, rule violation) {
	if !kept && f.err == nil {
		f.err = rule
	}
}

// take returns the next n bytes, or as many as there are.
func (f *fields) take(n int) (taken []byte) {
	f.require(n <= len(f.rest), "2.2.3")
	n = min(n, len(f.rest))
	taken, f.rest = f.rest[:n], f.rest[n:]
	return taken
}

// number returns a number of n bytes.
func (f *fields) number(n int) (v uint16) {
	for _, b := range f.take(n) {
		v = v<<8 | uint16(b)
	}
	return v
}

// id returns the identifier of a packet.
func (f *fields) id() uint16 {
	id := f.number(2)
	f.require(id != 0, "2.3.1-1")
	return id
}

// data returns bytes that have their length before them.
func (f *fields) data() []byte { return f.take(int(f.number(2))) }

func (f *fields) text() string {
	b := f.data()
	f.require(utf8.Valid(b), "1.5.3-1")
	f.require(bytes.IndexByte(b, 0) < 0, "1.5.3-2")
	return string(b)
}

// name returns the name of a topic.
func (f *fields) name() string {
	name := f.text()
	f.require(name != "", "4.7.3-1")
	f.require(!strings.ContainsAny(name, "+#"), "3.3.2-2")
	return name
}

// end returns the error of a body that ends here.
func (f *fields) end() error {
	f.require(len(f.rest) == 0, "2.2.3")
	return f.err
}

// hello is a CONNECT, without user name and password.
type hello struct {
	id        string
	clean     bool
	keepAlive time.Duration      // 0: none
	will      *topic.Publication // nil: none
}

// decodeConnect reads a CONNECT (section 3.1). The error may be a refusal.
func decodeConnect(p packet) (h hello, err error) {
	f := fields{rest: p.body}
	f.require(f.text() == "MQTT", "3.1.2-1")
	if level := f.number(1); f.err == nil && level != 4 {
		return h, badVersion // [MQTT-3.1.2-2]
	}
	flags := f.number(1)
	has := func(bit int) bool { return flags>>bit&1 == 1 }
	will, qos, retain, password, user := has(2), byte(flags>>3&3), has(5), has(6), has(7)
	f.require(!has(0), "3.1.2-3")
	f.require(will || qos == 0, "3.1.2-13")
	f.require(qos < 3, "3.1.2-14")
	f.require(will || !retain, "3.1.2-15")
	f.require(user || !password, "3.1.2-22")
	h.clean, h.keepAlive, h.id = has(1), time.Duration(f.number(2))*time.Second, f.text()
	if will {
		h.will = &topic.Publication{Topic: f.name(), Data: bytes.Clone(f.data()), Retain: retain, Tag: min(qos, 1)}
	}
	if user {
		f.text()
	}
	if password {
		f.data()
	}
	if err = f.end(); err == nil && h.id == "" && !h.clean {
		err = badID // [MQTT-3.1.3-8]
	}
	return h, err
}

// decodePublish reads a PUBLISH (section 3.3). The Tag is its quality of service. Its Data is lent.
func decodePublish(p packet) (m topic.Publication, id uint16, err error) {
	f := fields{rest: p.body}
	m.Tag, m.Retain = p.flags>>1&3, p.flags&1 == 1
	f.require(m.Tag < 3, "3.3.1-4")
	f.require(m.Tag < 2, "3.3.5-2") // a broker may close the connection rather than take it
	f.require(m.Tag > 0 || p.flags&8 == 0, "3.3.1-2")
	if m.Topic = f.name(); m.Tag > 0 {
		id = f.id()
	}
	m.Data = f.rest
	return m, id, f.err
}

// wish is a filter, with the quality of service that a SUBSCRIBE wants.
type wish struct {
	filter string
	qos    byte
}

// decodeWishes reads a SUBSCRIBE or an UNSUBSCRIBE (sections 3.8 and 3.10).
func decodeWishes(p packet) (id uint16, wishes []wish, err error) {
	f := fields{rest: p.body}
	for id = f.id(); len(f.rest) > 0 && f.err == nil; {
		w := wish{filter: f.text()}
		f.require(topic.ValidFilter(w.filter), "4.7")
		if p.kind == subscribe {
			w.qos = byte(f.number(1))
			f.require(w.qos < 3, "3.8.3-4")
		}
		wishes = append(wishes, w)
	}
	f.require(len(wishes) > 0 || p.kind == unsubscribe, "3.8.3-3")
	f.require(len(wishes) > 0, "3.10.3-2")
	return id, wishes, f.err
}

// encodePublish returns a PUBLISH of quality of service 1, or of 0 if id is 0.
func encodePublish(m *topic.Message, id uint16, again bool) []byte {
	first, length := byte(publish)<<4, 2+len(m.Topic)+len(m.Data)
	if id != 0 {
		first, length = first|1<<1, length+2
	}
	if again {
		first |= 1 << 3
	}
	if m.Retained {
		first |= 1
	}
	out := append(make([]byte, 0, maxHeader+length), first)
	out = binary.AppendUvarint(out, uint64(length))
	out = binary.BigEndian.AppendUint16(out, uint16(len(m.Topic)))
	out = append(out, m.Topic...)
	if id != 0 {
		out = binary.BigEndian.AppendUint16(out, id)
	}
	return append(out, m.Data...)
}

// encodeAck returns an acknowledgement, with the return codes of a SUBACK.
func encodeAck(k kind, id uint16, codes ...byte) []byte {
	out := binary.AppendUvarint([]byte{byte(k) << 4}, uint64(2+len(codes)))
	return append(binary.BigEndian.AppendUint16(out, id), codes...)
}
