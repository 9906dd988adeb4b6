package http2

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUrgency(t *testing.T) {
	for value, want := range map[string]uint8{
		"": 3, "u=0": 0, "u=7, i": 7, "i, u=5": 5, " u=1 ": 1, "u=1;x=\"y\"": 1, "u=1, u=2": 2, "x=u, \tu=4": 4,
		"u=8": 3, "u=10": 3, "u=-1": 3, "u=?1": 3, "u": 3, "U=1": 3, "u =1": 3, "xu=1": 3, "u=1x": 3, ",,": 3,
	} {
		require.Equal(t, want, Urgency([]byte(value), DefaultUrgency), "%q", value)
	}
}

func TestPriorityUpdate(t *testing.T) {
	id, urgency, err := ReadPriorityUpdate([]byte("\x80\x00\x00\x05u=2, i"))
	require.Nil(t, err)
	require.Equal(t, []any{uint32(5), uint8(2)}, []any{id, urgency})
	for _, p := range []string{"\x00\x00\x00\x00u=2", "\x00\x00\x00\x02u=2"} {
		_, _, err = ReadPriorityUpdate([]byte(p))
		require.Equal(t, errUpdated, err)
	}
}
