package http2

import (
	"bytes"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2/hpack"
	"testing"
)

func TestSmoke(t *testing.T) {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for _, f := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":path", "/a?b=c"}, {":authority", "x.y"}, {"cookie", "a=b"}, {"x", "y"}, {"cookie", "c=d"}, {"cookie", "e=f"}, {"priority", "u=1, i"}} {
		e.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	var h Head
	for n := range b.Len() {
		d := NewDecoder()
		d.Begin(&h, Limits{}, false)
		require.Nil(t, d.Write(b.Bytes()[:n]))
		require.Nil(t, d.Write(b.Bytes()[n:]))
		require.Nil(t, d.End(true))
		require.Equal(t, "a=b; c=d; e=f", string(h.Fields[0].Value.Of(h.Text)))
		require.Equal(t, "b=c", string(h.Query.Of(h.Text)))
		require.EqualValues(t, 1, h.Urgency)
	}
}
