package http2

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2/hpack"
)

func unhex(t *testing.T, text string) []byte {
	p, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	require.NoError(t, err)
	return p
}

// RFC 7541 C.3 and C.4 are three requests on a connection each, without Huffman's code and with it.
func TestTheRequestsOfRFC7541(t *testing.T) {
	for _, three := range [][3]string{
		{"8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", "8286 84be 5808 6e6f 2d63 6163 6865",
			"8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65"},
		{"8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", "8286 84be 5886 a8eb 1064 9cbf",
			"8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf"},
	} {
		d := NewDecoder(new([]byte))
		for i, want := range []string{"GET /? www.example.com", "GET /? www.example.com; cache-control: no-cache",
			"GET /index.html? www.example.com; custom-key: custom-value"} {
			b := unhex(t, three[i])
			require.Equal(t, want, read(d, Limits{}, true, false, b[:i+3], b[i+3:]))
		}
	}
}

// RFC 7541 C.2: a literal for the table, and one for no table at all.
func TestTheFieldsOfRFC7541(t *testing.T) {
	for b, want := range map[string]string{
		"400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572": " ? ; custom-key: custom-header",
		"1008 7061 7373 776f 7264 0673 6563 7265 74":                       " ? ; password: secret",
	} {
		require.Equal(t, want, read(NewDecoder(new([]byte)), Limits{}, true, true, unhex(t, b)))
	}
}

func TestIntegers(t *testing.T) {
	for p, want := range map[string]struct {
		mask  byte
		value int64
		next  int
	}{
		"\x2a":                         {0x1f, 10, 2},   // RFC 7541 C.1.1, with other bits before it
		"\x1f\x9a\x0a":                 {0x1f, 1337, 4}, // C.1.2
		"\x2b":                         {0xff, 43, 2},   // C.1.3, or nearly
		"\x1f":                         {0x1f, 0, 0},    // 5.1, as all that follow
		"\x1f\x9a":                     {0x1f, 0, 0},
		"\x1e\xff":                     {0x1f, 30, 2},
		"\x1f\x00":                     {0x1f, 31, 3},
		"\x1f\x80\x80\x80\x80\x01":     {0x1f, 31 + 1<<28, 7},
		"\x1f\x80\x80\x80\x80\x80":     {0x1f, 0, 0},
		"\x1f\x80\x80\x80\x80\x80\x01": {0x1f, 0, -1},
	} {
		value, next := readInteger([]byte("x"+p), 1, want.mask)
		require.Equal(t, want.next, next, "%q", p)
		require.Equal(t, want.value, value, "%q", p)
	}
}

// Sections are of RFC 7541. All of these end the connection, whatever they are cut into.
func TestBlocksThatCannotBeDecoded(t *testing.T) {
	for name, row := range map[string]struct {
		block string
		want  *Error
	}{
		"2.3.3 index 0":                       {"\x80", errCompression},
		"2.3.3 an index beyond the table":     {"\xbe", errCompression},
		"2.3.3 of a name":                     {"\x7e\x01a", errCompression},
		"4.2 a table that is too large":       {"\x3f\xe2\x1f", errCompression},
		"4.2 its size after a field":          {"\x82\x20", errUpdate},
		"5.1 an integer that is too long":     {"\xff\x80\x80\x80\x80\x80\x80\x00", errCompression},
		"5.1 a length that is too long":       {"\x00\x7f\x80\x80\x80\x80\x80\x80\x00", errCompression},
		"5.2 padding of Huffman's code":       {"\x00\x81\x00\x01a", errCompression},
		"5.2 EOS in Huffman's code":           {"\x00\x84\xff\xff\xff\xff\x01a", errCompression},
		"9113 4.3 a cut index":                {"\xff", errCut},
		"9113 4.3 a cut name":                 {"\x82\x00\x05abc", errCut},
		"9113 4.3 no value":                   {"\x82\x00\x01a", errCut},
		"9113 4.3 a cut length":               {"\x82\x00\x01a\x7f\x80", errCut},
		"9113 4.3 a cut value":                {"\x82\x00\x01a\x02b", errCut},
		"9113 10.5.1 a value of 128 KiB":      {"\x82\x04\x7f\x81\xff\x07", errLargeBlock},
		"9113 10.5.1 a name of 128 KiB":       {"\x82\x00\x7f\x81\xff\x07", errLargeBlock},
		"9113 10.5.1 one of many gigabytes":   {"\x82\x04\x7f\x80\x80\x80\x80\x7f", errLargeBlock},
		"9113 10.5.1 128 KiB of small fields": {strings.Repeat("\x82", maxBlock+1), errLargeBlock},
	} {
		for i := range min(len(row.block), 20) {
			got := read(NewDecoder(new([]byte)), Limits{}, true, false, []byte(row.block[:i]), []byte(row.block[i:]))
			require.Equal(t, row.want, got, name)
		}
	}
	// Changes of the table at the beginning are fine, and 4.2 a table that is smaller loses its oldest fields.
	require.Equal(t, "GET /? a", read(NewDecoder(new([]byte)), Limits{}, true, false, []byte("\x20\x3f\xe1\x1f"), block(get)))
	require.Equal(t, errMissing, read(NewDecoder(new([]byte)), Limits{}, true, false, nil))
}

// A block may come in 32 frames, and one more for each KiB.
func TestFramesOfABlock(t *testing.T) {
	kib := slices.Collect(slices.Chunk(block(get+"|x "+strings.Repeat("~", 8<<10)), 1<<10)) // more than 8 of them
	for _, pieces := range [][][]byte{{block(get)}, kib} {
		empty := maxFrames + len(bytes.Join(pieces, nil))>>10 - len(pieces)
		require.IsType(t, "", read(NewDecoder(new([]byte)), Limits{}, true, false, append(pieces, make([][]byte, empty)...)...))
		require.Equal(t, errManyFrames, read(NewDecoder(new([]byte)), Limits{}, true, false, append(pieces, make([][]byte, empty+1)...)...))
	}
}

// Each byte of a block of 64 KiB refers to a field of the table, to two in turn, or to a pseudo-field.
func TestABlockOfReferencesCostsBoundedMemory(t *testing.T) {
	long := strings.Repeat("a", 4000)
	for name, row := range map[string]struct {
		known, references string
		times             int
		want              any
	}{
		"a large cookie":              {"cookie " + long, "\xbe", 64 << 10, errLargeHead},
		"small ones":                  {"cookie a", "\xbe", 64 << 10, errManyFields},
		"a large field":               {"x " + long, "\xbe", 64 << 10, errLargeHead},
		"small fields":                {"x y", "\xbe", 64 << 10, errManyFields},
		"pseudo-fields":               {"x y", "\x82", 64 << 10, errTwice},
		"as much of a cookie as fits": {"x y|cookie " + long[:500], "\xbe\xbf", 99, nil},
	} {
		var first bytes.Buffer
		e := hpack.NewEncoder(&first)
		for field := range strings.SplitSeq(get+"|"+row.known, "|") {
			name, value, _ := strings.Cut(field, " ")
			_ = e.WriteField(hpack.HeaderField{Name: name, Value: value})
		}
		d := NewDecoder(new([]byte))
		require.IsType(t, "", read(d, Limits{}, true, false, first.Bytes()))
		bomb := append([]byte("\x82\x87\x84\x01\x01a"), strings.Repeat(row.references, row.times)...)
		var h Head
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		d.Begin(&h, Limits{}, false)
		err := d.Write(bomb)
		if e := d.End(true); err == nil {
			err = e
		}
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(10*maxHead), name) // as slices grow
		require.LessOrEqual(t, len(h.Text), 2*maxHead, name)
		if row.want != errTwice {
			require.Equal(t, row.want == nil, h.Refused == nil && err == nil, name)
		} else {
			require.Equal(t, row.want, err, name)
		}
		h.Reset()
		require.LessOrEqual(t, cap(h.Text), keptText, name)
		require.Zero(t, d.Held())
		require.Equal(t, "GET /? a", read(d, Limits{}, true, false, []byte("\x82\x87\x84\x01\x01a")), name)
	}
}

func TestHeadsThatAreLargeAreNotKept(t *testing.T) {
	for n, kept := range map[int]bool{100: true, 300: false} {
		d := NewDecoder(new([]byte))
		var h Head
		d.Begin(&h, Limits{Fields: n}, false)
		require.Nil(t, d.Write(block(get+strings.Repeat("|x y", n))))
		require.Nil(t, d.End(true))
		require.Len(t, h.Fields, n)
		h.Reset()
		require.Equal(t, kept, cap(h.Fields) >= n)
		require.Positive(t, cap(h.Text))
	}
	d := NewDecoder(new([]byte))
	d.Begin(new(Head), Limits{}, false)
	require.Nil(t, d.Write([]byte("\x82\x00\x7f\xff\xff\x00")))
	require.Nil(t, d.Write(make([]byte, 9000)))
	require.Greater(t, d.Held(), 9000)
	require.Equal(t, errCut, d.End(true))
	require.Zero(t, d.Held())
}

// transcript is what the bytes of a client mean, up to a mistake that ends the connection. With a cut of at least 0, blocks
// are cut there.
func transcript(t *testing.T, in []byte, cut int) (said string) {
	d, states := NewDecoder(new([]byte)), map[uint32]State{}
	var h Head
	var open bool
	for len(in) >= HeaderLen {
		f := ParseHeader(in)
		err := f.Check()
		said += fmt.Sprintf("%v %v; ", f, err)
		if in = in[HeaderLen:]; err != nil && err.Stream == 0 || int(f.Length) > len(in) {
			return said
		}
		p, err := Payload(f, in[:f.Length])
		in = in[f.Length:]
		if f.Type < Settings && err == nil {
			states[f.Stream], err = states[f.Stream].Receive(f)
		}
		switch f.Type {
		case Settings:
			_, err = ReadSettings(p, Unknown)
		case PriorityUpdate:
			_, _, err = ReadPriorityUpdate(p)
		case Headers, Continuation:
			if f.Type == Headers == open {
				return said
			} else if !open {
				d.Begin(&h, Limits{Head: 4 << 10, Fields: 8}, states[f.Stream] > HalfRemote)
			}
			at := max(0, min(cut, len(p)))
			d.frames = 0
			open = !f.Flags.Has(EndHeaders)
			if cut >= 0 && d.Write(p[:at]) != nil || d.Write(p[at:]) != nil {
				return said + "broken"
			}
			require.LessOrEqual(t, len(h.Text), 2*4<<10)
			require.LessOrEqual(t, d.Held(), 4*maxBlock)
			if !open {
				end := d.End(f.Flags.Has(EndStream))
				if said += fmt.Sprintf("%q %v %v; ", h.Text, h.Refused, end); end == errCut {
					return said
				}
			}
		}
		said += fmt.Sprintf("%v %q; ", err, p)
		if err != nil && err.Stream == 0 {
			return said
		}
	}
	return said
}

// FuzzFrames compares frames and blocks with themselves, cut anywhere.
func FuzzFrames(f *testing.F) {
	first, next := blocks(asked...)
	for _, p := range [][]byte{
		AppendHeaders(AppendHeaders(nil, 1, first, true), 3, next, false),
		AppendHeaders(AppendSettings(nil, Setting{InitialWindowSize, 1}, Setting{EnablePush, 0}), 1, block(socket), false),
		append(Header{7, Data, Padded, 1}.Append(nil), "\x02abcd\x00\x00"...),
		append(Header{4 + 3, PriorityUpdate, 0, 0}.Append(nil), "\x00\x00\x00\x01u=1"...),
		append(Header{6, Headers, HasPriority | EndHeaders, 1}.Append(nil), "\x00\x00\x00\x00\x10\x82"...),
		append(Header{1, Headers, 0, 1}.Append(nil), "\x82\x00\x00\x02\x09\x04\x00\x00\x00\x01\x00\x01"...),
		Header{0, Priority, 0, 1}.Append(nil),
		AppendWindowUpdate(AppendRST(AppendGoAway(nil, 1, Cancel, "a"), 1, Cancel), 1, 1),
	} {
		f.Add(p, 3)
	}
	f.Fuzz(func(t *testing.T, in []byte, cut int) {
		whole := transcript(t, in, -1)
		for at := range 3 {
			require.Equal(t, whole, transcript(t, in, max(0, cut)+at))
		}
	})
}

// A table of which each entry is used once, and Huffman's code, do not make a head that is inflated. A field that is repeated does.
func TestInflated(t *testing.T) {
	var b bytes.Buffer
	d, e := NewDecoder(new([]byte)), hpack.NewEncoder(&b)
	for _, row := range []struct {
		value    string
		times    int
		inflated bool
	}{{strings.Repeat("v", 4000), 1, false}, {strings.Repeat("v", 4000), 4, false}, {strings.Repeat("v", 4000), 5, true},
		{strings.Repeat("a", 50_000), 1, false}} {
		b.Reset()
		for range row.times {
			require.NoError(t, e.WriteField(hpack.HeaderField{Name: "a", Value: row.value}))
		}
		read(d, Limits{}, true, true, b.Bytes())
		require.Equal(t, row.inflated, d.Inflated(), row.times)
	}
}

// Decoders that share memory do not share heads.
func TestDecodersThatShareMemory(t *testing.T) {
	memory, h := make([]byte, 0, 100), &Head{}
	a, b := NewDecoder(&memory), NewDecoder(&memory)
	a.Begin(h, Limits{}, false)
	require.Nil(t, a.Write(block(get)))
	require.Equal(t, "GET /? b", read(b, Limits{}, true, false, block(strings.Replace(get, "y a", "y b", 1))))
	require.Nil(t, a.End(true))
	require.Equal(t, "a", string(h.Authority.Of(h.Text)))
}
