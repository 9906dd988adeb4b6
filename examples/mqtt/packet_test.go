package main

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/topic"
)

// raw returns a packet.
func raw(first byte, fields ...string) string {
	body := strings.Join(fields, "")
	return string(binary.AppendUvarint([]byte{first}, uint64(len(body)))) + body
}

// text returns a field with its length.
func text(s string) string { return string(binary.BigEndian.AppendUint16(nil, uint16(len(s)))) + s }

// hi returns a CONNECT with some flags and a keep-alive of 2 s.
func hi(id string, flags byte, more ...string) string {
	return raw(0x10, text("MQTT"), "\x04", string([]byte{flags}), "\x00\x02", text(id), strings.Join(more, ""))
}

// decode decodes a packet that a client sends.
func decode(in []byte) (n int, err error) {
	p, n, err := split(in)
	if err != nil || n > len(in) {
		return n, err
	}
	switch p.kind {
	case connect:
		_, err = decodeConnect(p)
	case publish:
		_, _, err = decodePublish(p)
	case subscribe, unsubscribe:
		_, _, _, err = decodeFilters(p)
	case puback:
		f := fields{rest: p.body}
		f.id()
		err = f.err
	}
	return n, err
}

func TestRules(t *testing.T) {
	long := strings.Repeat("x", topic.MaxName)
	for _, row := range []struct{ broken, packet string }{
		{"", hi("a", 2)},
		{"", hi("a", 0)},
		{"", hi("", 2)},
		{"", hi("a", 0xee, text("will"), text("data"), text("user"), text("password"))},
		{"", hi("a", 0x82, text("user"))},
		{"", raw(0x30, text("t"))},
		{"", raw(0x30, text(long), "data")},
		{"", raw(0x3b, text("t"), "\x00\x01", "data")},
		{"", raw(0x40, "\x00\x01")},
		{"", raw(0x82, "\x00\x01", text("a/+/#"), "\x00", text("+"), "\x01", text("$a"), "\x02")},
		{"", raw(0xa2, "\x00\x01", text("a"), text("#"))},
		{"", raw(0xc0)},
		{"", raw(0xe0)},

		{"1.5.3-1", hi("a\xff", 2)},
		{"1.5.3-1", raw(0x30, text("\xed\xa0\x80"))}, // half of a surrogate pair
		{"1.5.3-2", hi("\x00", 2)},
		{"1.5.3-2", raw(0x30, text("a\x00b"))},
		{"2.2.2-2", raw(0x00)},
		{"2.2.2-2", raw(0x11)},
		{"2.2.2-2", raw(0x20, "\x00\x00")}, // a CONNACK
		{"2.2.2-2", raw(0x41, "\x00\x01")},
		{"2.2.2-2", raw(0x62, "\x00\x01")},                    // a PUBREL
		{"2.2.2-2", raw(0x80, "\x00\x01", text("a"), "\x00")}, // [MQTT-3.8.1-1]
		{"2.2.2-2", raw(0xa0, "\x00\x01", text("a"))},         // [MQTT-3.10.1-1]
		{"2.2.2-2", raw(0xc1)},
		{"2.2.2-2", raw(0xe1)}, // [MQTT-3.14.1-1]
		{"2.2.2-2", raw(0xf0)},
		{"2.2.3", "\x30\xff\xff\xff\xff\x01"}, // a length of five bytes
		{"2.2.3", "\x30\x81\x80\x10"},         // a packet of 256 KiB and a byte
		{"2.2.3", raw(0x10, text("MQTT"), "\x04\x02\x00")},
		{"2.2.3", hi("a", 4)}, // without the will
		{"2.2.3", hi("a", 0x82)},
		{"2.2.3", hi("a", 2, "more")},
		{"2.2.3", raw(0x30)},
		{"2.2.3", raw(0x30, "\x00\x05four")},
		{"2.2.3", raw(0x82, "\x00\x01", text("a"))},
		{"2.2.3", raw(0xa2, "\x00\x01", "\x00\x02a")},
		{"2.3.1-1", raw(0x32, text("t"), "\x00\x00")},
		{"2.3.1-1", raw(0x82, "\x00\x00", text("a"), "\x00")},
		{"2.3.1-1", raw(0xa2, "\x00\x00", text("a"))},
		{"2.3.1-1", raw(0x40, "\x00\x00")},
		{"3.1.2-1", raw(0x10, text("MQIsdp"), "\x03\x02\x00\x02", text("a"))},
		{"3.1.2-2", raw(0x10, text("MQTT"), "\x05\x02\x00\x02\x00", text("a"))},
		{"3.1.2-3", hi("a", 3)},
		{"3.1.2-13", hi("a", 0x0a)},
		{"3.1.2-14", hi("a", 0x1e, text("will"), text("data"))},
		{"3.1.2-15", hi("a", 0x22)},
		{"3.1.2-22", hi("a", 0x42, text("password"))},
		{"3.1.3-8", hi("", 0)},
		{"3.3.1-2", raw(0x38, text("t"))},
		{"3.3.1-4", raw(0x36, text("t"), "\x00\x01")},
		{"3.3.2-2", raw(0x30, text("a/+"))},
		{"3.3.2-2", raw(0x30, text("#"))},
		{"3.3.2-2", raw(0x30, text(""))},            // [MQTT-4.7.3-1]
		{"3.3.2-2", raw(0x30, text("$SYS/uptime"))}, // section 4.7.2
		{"3.3.2-2", hi("a", 6, text("will/+"), text("data"))},
		{"3.3.5-2", raw(0x34, text("t"), "\x00\x01")}, // quality of service 2
		{"3.8.3-3", raw(0x82, "\x00\x01")},
		{"3.8.3-4", raw(0x82, "\x00\x01", text("a"), "\x03")},
		{"3.8.3-4", raw(0x82, "\x00\x01", text("a"), "\x04")},
		{"3.10.3-2", raw(0xa2, "\x00\x01")},
		{"4.7", raw(0x82, "\x00\x01", text(""), "\x00")},      // [MQTT-4.7.3-1]
		{"4.7", raw(0x82, "\x00\x01", text("a/#/b"), "\x00")}, // [MQTT-4.7.1-2]
		{"4.7", raw(0x82, "\x00\x01", text("a#"), "\x00")},
		{"4.7", raw(0xa2, "\x00\x01", text("a+/b"))}, // [MQTT-4.7.1-3]
	} {
		n, err := decode([]byte(row.packet))
		if row.broken == "" {
			require.NoError(t, err, "%q", row.packet)
			require.Equal(t, len(row.packet), n, "%q", row.packet)
			continue
		}
		require.Equal(t, violation(row.broken), err, "%q", row.packet)
	}
}

// Whatever comes, a packet takes at most so many bytes, which all are needed, and what follows changes nothing.
func FuzzPackets(f *testing.F) {
	f.Add([]byte(hi("a", 0xee, text("will"), text("data"), text("user"), text("password"))))
	f.Add([]byte(raw(0x82, "\x00\x01", text("a/+/#"), "\x00")))
	f.Add([]byte(raw(0x3b, text("t"), "\x00\x01", strings.Repeat("data", 100))))
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) < minHeader {
			return
		}
		n, err := decode(in)
		require.LessOrEqual(t, n, maxHeader+maxPacket)
		if err != nil || n > len(in) {
			return
		}
		same, err := decode(append(in[:n:n], "\xff\xff"...))
		require.NoError(t, err)
		require.Equal(t, n, same)
		for short := minHeader; short < n; short += 1 + n/64 {
			need, err := decode(in[:short])
			require.NoError(t, err)
			require.Greater(t, need, short)
			require.LessOrEqual(t, need, n)
		}
	})
}
