package http2

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHeaders(t *testing.T) {
	for wire, h := range map[string]Header{
		"\x00\x00\x00\x04\x01\x00\x00\x00\x00": {Type: Settings, Flags: Ack},
		"\x00\x40\x00\x00\x09\x00\x00\x00\x05": {Length: MaxFrame, Type: Data, Flags: EndStream | Padded, Stream: 5},
		"\xff\xfe\xfd\xff\xff\x7f\xff\xff\xff": {Length: 0xfffefd, Type: 0xff, Flags: 0xff, Stream: 1<<31 - 1},
	} {
		require.Equal(t, h, ParseHeader([]byte(wire+"more")))
		require.Equal(t, wire, string(h.Append(nil)))
	}
	require.EqualValues(t, 1, ParseHeader([]byte("\x00\x00\x00\x00\x00\x80\x00\x00\x01")).Stream, "the reserved bit")
	require.True(t, (EndHeaders | Padded).Has(Padded))
	require.False(t, Padded.Has(Padded|EndHeaders))
}

// Each row is of RFC 9113, but for PRIORITY_UPDATE.
func TestCheck(t *testing.T) {
	const long = MaxFrame + 1
	for name, row := range map[string]struct {
		h    Header
		want *Error
	}{
		"4.1 an unknown type":                 {Header{Type: 0xa, Length: 7, Stream: 2, Flags: 0xff}, nil},
		"4.1 a type above all others":         {Header{Type: 0x11, Length: MaxFrame}, nil},
		"4.2 an unknown type that is long":    {Header{Type: 0xa, Length: long}, errLong},
		"4.2 DATA":                            {Header{Type: Data, Length: MaxFrame, Stream: 1}, nil},
		"4.2 long DATA":                       {Header{Type: Data, Length: long, Stream: 1}, errLong},
		"5.1.1 DATA":                          {Header{Type: Data, Stream: 2}, errEven},
		"5.1.1 HEADERS":                       {Header{Type: Headers, Stream: 2}, errEven},
		"5.1.1 RST_STREAM":                    {Header{Type: RSTStream, Length: 4, Stream: 2}, errEven},
		"5.1.1 WINDOW_UPDATE":                 {Header{Type: WindowUpdate, Length: 4, Stream: 2}, errEven},
		"5.1.1 CONTINUATION":                  {Header{Type: Continuation, Stream: 2}, errEven},
		"6.1 DATA without a stream":           {Header{Type: Data}, errNoStream},
		"6.1 DATA without the padding's size": {Header{Type: Data, Flags: Padded, Stream: 1}, errSize},
		"6.1 DATA with nothing but it":        {Header{Type: Data, Flags: Padded, Length: 1, Stream: 1}, nil},
		"6.2 HEADERS without a stream":        {Header{Type: Headers}, errNoStream},
		"6.2 HEADERS with half a priority":    {Header{Type: Headers, Flags: HasPriority, Length: 4, Stream: 1}, errSize},
		"6.2 HEADERS with all of it":          {Header{Type: Headers, Flags: HasPriority, Length: 5, Stream: 1}, nil},
		"6.2 HEADERS with half of both":       {Header{Type: Headers, Flags: HasPriority | Padded, Length: 5, Stream: 1}, errSize},
		"6.2 HEADERS with both":               {Header{Type: Headers, Flags: HasPriority | Padded, Length: 6, Stream: 1}, nil},
		"6.3 PRIORITY":                        {Header{Type: Priority, Length: 5, Stream: 2, Flags: 0xff}, nil},
		"6.3 PRIORITY without a stream":       {Header{Type: Priority, Length: 5}, errNoStream},
		"6.3 a short PRIORITY":                {Header{Type: Priority, Length: 4, Stream: 3}, errPriority.On(3)},
		"6.3 a long PRIORITY":                 {Header{Type: Priority, Length: 6, Stream: 3}, errPriority.On(3)},
		"6.4 RST_STREAM":                      {Header{Type: RSTStream, Length: 4, Stream: 1}, nil},
		"6.4 RST_STREAM without a stream":     {Header{Type: RSTStream, Length: 4}, errNoStream},
		"6.4 a short RST_STREAM":              {Header{Type: RSTStream, Length: 3, Stream: 1}, errSize},
		"6.4 a long RST_STREAM":               {Header{Type: RSTStream, Length: 5, Stream: 1}, errSize},
		"6.5 SETTINGS":                        {Header{Type: Settings, Length: 12}, nil},
		"6.5 SETTINGS with a stream":          {Header{Type: Settings, Stream: 1}, errOnStream},
		"6.5 a part of SETTINGS":              {Header{Type: Settings, Length: 5}, errSize},
		"6.5 an answer to SETTINGS":           {Header{Type: Settings, Flags: Ack}, nil},
		"6.5 an answer that says something":   {Header{Type: Settings, Flags: Ack, Length: 6}, errSize},
		"6.7 PING":                            {Header{Type: Ping, Length: 8}, nil},
		"6.7 PING with a stream":              {Header{Type: Ping, Length: 8, Stream: 1}, errOnStream},
		"6.7 a short PING":                    {Header{Type: Ping, Length: 7}, errSize},
		"6.7 a long PING":                     {Header{Type: Ping, Length: 9}, errSize},
		"6.8 GOAWAY":                          {Header{Type: GoAway, Length: 8}, nil},
		"6.8 GOAWAY with a text":              {Header{Type: GoAway, Length: 80}, nil},
		"6.8 GOAWAY with a stream":            {Header{Type: GoAway, Length: 8, Stream: 1}, errOnStream},
		"6.8 a short GOAWAY":                  {Header{Type: GoAway, Length: 7}, errSize},
		"6.9 WINDOW_UPDATE of the connection": {Header{Type: WindowUpdate, Length: 4}, nil},
		"6.9 WINDOW_UPDATE of a stream":       {Header{Type: WindowUpdate, Length: 4, Stream: 1}, nil},
		"6.9 a short WINDOW_UPDATE":           {Header{Type: WindowUpdate, Length: 3}, errSize},
		"6.9 a long WINDOW_UPDATE":            {Header{Type: WindowUpdate, Length: 5}, errSize},
		"6.10 CONTINUATION":                   {Header{Type: Continuation, Stream: 1}, nil},
		"6.10 CONTINUATION without a stream":  {Header{Type: Continuation}, errNoStream},
		"8.4 PUSH_PROMISE":                    {Header{Type: PushPromise, Length: 4, Stream: 1}, errPush},
		"9218 7.1 PRIORITY_UPDATE":            {Header{Type: PriorityUpdate, Length: 4}, nil},
		"9218 7.1 of a stream":                {Header{Type: PriorityUpdate, Length: 4, Stream: 1}, errOnStream},
		"9218 7.1 a short one":                {Header{Type: PriorityUpdate, Length: 3}, errSize},
	} {
		require.Equal(t, row.want, row.h.Check(), name)
	}
}

func TestPayload(t *testing.T) {
	for name, row := range map[string]struct {
		typ   Type
		flags Flags
		p     string
		want  string
		err   *Error
	}{
		"6.1 DATA":                       {Data, HasPriority, "abc", "abc", nil},
		"6.1 padding":                    {Data, Padded, "\x02abc\x00\x00", "abc", nil},
		"6.1 padding of nothing":         {Data, Padded, "\x00abc", "abc", nil},
		"6.1 nothing but padding":        {Data, Padded, "\x03\x00\x00\x00", "", nil},
		"6.1 padding beyond the end":     {Data, Padded, "\x04\x00\x00\x00", "", ErrPadding},
		"6.2 a priority":                 {Headers, HasPriority, "\x00\x00\x00\x03\x10abc", "abc", nil},
		"6.2 both":                       {Headers, HasPriority | Padded, "\x01\x80\x00\x00\x03\x10abc\x00", "abc", nil},
		"6.2 padding up to the priority": {Headers, HasPriority | Padded, "\x01\x00\x00\x00\x03\x10\x00", "", nil},
		"6.2 padding into the priority":  {Headers, HasPriority | Padded, "\x02\x00\x00\x00\x03\x10\x00", "", ErrPadding},
		"6.2 HEADERS":                    {Headers, EndStream | EndHeaders, "\x00\x00\x00\x05abc", "\x00\x00\x00\x05abc", nil},
		"6.10 CONTINUATION":              {Continuation, Padded | HasPriority, "\x00\x00\x00\x05abc", "\x00\x00\x00\x05abc", nil},
		"7540 5.3.1 HEADERS":             {Headers, HasPriority, "\x80\x00\x00\x05\x10abc", "abc", errItself.On(5)},
		"7540 5.3.1 PRIORITY":            {Priority, 0, "\x80\x00\x00\x05\x10", "\x80\x00\x00\x05\x10", errItself.On(5)},
		"7540 5.3.1 of another":          {Priority, 0, "\x00\x00\x00\x00\x10", "\x00\x00\x00\x00\x10", nil},
	} {
		h := Header{Type: row.typ, Flags: row.flags, Length: uint32(len(row.p)), Stream: 5}
		require.Nil(t, h.Check(), name)
		got, err := Payload(h, []byte(row.p))
		require.Equal(t, row.want, string(got), name)
		require.Equal(t, row.err, err, name)
	}
}

func TestFramesThatAreSent(t *testing.T) {
	frame := func(p []byte) (Header, []byte) {
		h := ParseHeader(p)
		require.Len(t, p[HeaderLen:], int(h.Length))
		require.Nil(t, h.Check())
		return h, p[HeaderLen:]
	}
	h, p := frame(AppendRST(nil, 3, Cancel))
	require.Equal(t, Header{4, RSTStream, 0, 3}, h)
	require.Equal(t, Cancel, ReadRST(p))

	h, p = frame(AppendGoAway(nil, 7, EnhanceYourCalm, "slower"))
	require.Equal(t, Header{14, GoAway, 0, 0}, h)
	require.Equal(t, "\x00\x00\x00\x07\x00\x00\x00\x0bslower", string(p))
	last, code := ReadGoAway(p)
	require.Equal(t, []any{uint32(7), EnhanceYourCalm}, []any{last, code})
	h, _ = frame(AppendGoAway(nil, 1<<31-1, NoError, strings.Repeat("a", MaxFrame)))
	require.EqualValues(t, 8+1024, h.Length)

	h, p = frame(AppendWindowUpdate(nil, 3, MaxWindow))
	require.Equal(t, Header{4, WindowUpdate, 0, 3}, h)
	n, err := ReadWindowUpdate(h, p)
	require.Nil(t, err)
	require.EqualValues(t, MaxWindow, n)
	for _, stream := range []uint32{0, 3} { // 6.9
		h.Stream = stream
		_, err = ReadWindowUpdate(h, []byte{0x80, 0, 0, 0})
		require.Equal(t, &Error{ProtocolError, stream, errNothing.Why}, err)
	}

	data := [8]byte{1, 2, 3, 4, 5, 6, 7, 8}
	h, p = frame(AppendPing(nil, false, data))
	require.Equal(t, Header{8, Ping, 0, 0}, h)
	require.Equal(t, data, [8]byte(p))
	h, _ = frame(AppendPing(nil, true, data))
	require.Equal(t, Header{8, Ping, Ack, 0}, h)
	h, _ = frame(AppendSettingsAck(nil))
	require.Equal(t, Header{0, Settings, Ack, 0}, h)

	for size, want := range map[int][]Header{
		0:            {{0, Headers, EndHeaders | EndStream, 1}},
		MaxFrame:     {{MaxFrame, Headers, EndHeaders | EndStream, 1}},
		MaxFrame + 1: {{MaxFrame, Headers, EndStream, 1}, {1, Continuation, EndHeaders, 1}},
		2*MaxFrame + 1: {{MaxFrame, Headers, EndStream, 1}, {MaxFrame, Continuation, 0, 1},
			{1, Continuation, EndHeaders, 1}},
	} {
		p := AppendHeaders(nil, 1, make([]byte, size), true)
		for _, w := range want {
			require.Equal(t, w, ParseHeader(p))
			p = p[HeaderLen+w.Length:]
		}
		require.Empty(t, p)
	}
	require.Equal(t, EndHeaders, ParseHeader(AppendHeaders(nil, 1, nil, false)).Flags)
}

func TestSettings(t *testing.T) {
	for name, row := range map[string]struct {
		sent []Setting
		want uint32
		err  *Error
	}{
		"6.5.2 none":                   {nil, 5, nil},
		"6.5.2 what is ignored":        {[]Setting{{HeaderTableSize, 0}, {MaxHeaderListSize, 0}, {99, 9}}, 5, nil},
		"6.5.2 the largest":            {[]Setting{{InitialWindowSize, MaxWindow}, {MaxFrameSize, 1<<24 - 1}}, MaxWindow, nil},
		"6.5.2 the smallest":           {[]Setting{{InitialWindowSize, 0}, {MaxFrameSize, MaxFrame}}, 0, nil},
		"6.5.3 the last counts":        {[]Setting{{InitialWindowSize, 1}, {InitialWindowSize, 2}}, 2, nil},
		"6.5.2 too large a window":     {[]Setting{{InitialWindowSize, MaxWindow + 1}}, 0, errWindow},
		"6.5.2 too small frames":       {[]Setting{{MaxFrameSize, MaxFrame - 1}}, 0, errMaximum},
		"6.5.2 too large frames":       {[]Setting{{MaxFrameSize, 1 << 24}}, 0, errMaximum},
		"6.5.2 ENABLE_PUSH":            {[]Setting{{EnablePush, 1}, {EnablePush, 0}}, 5, nil},
		"6.5.2 ENABLE_PUSH of 2":       {[]Setting{{EnablePush, 2}}, 0, errSwitch},
		"8441 3 CONNECT_PROTOCOL of 2": {[]Setting{{EnableConnect, 2}}, 0, errSwitch},
		"9218 2.1 NO_PRIORITIES of 2":  {[]Setting{{NoPriorities, 2}}, 0, errSwitch},
		"9218 2.1 both of them":        {[]Setting{{EnableConnect, 1}, {NoPriorities, 1}}, 5, nil},
	} {
		p := AppendSettings(nil, row.sent...)
		require.Equal(t, Header{Type: Settings, Length: uint32(6 * len(row.sent))}, ParseHeader(p), name)
		peer, err := ReadSettings(p[HeaderLen:], Peer{Window: 5})
		require.Equal(t, row.err, err, name)
		if err == nil {
			require.Equal(t, row.want, peer.Window, name)
		}
	}
	peer := Unknown
	for _, row := range []struct {
		sent Setting
		want Peer
		err  *Error
	}{
		{Setting{MaxConcurrentStreams, 0}, Peer{DefaultWindow, 0, false, false}, nil},
		{Setting{MaxConcurrentStreams, 7}, Peer{DefaultWindow, 7, false, false}, nil},
		{Setting{EnablePush, 1}, Peer{DefaultWindow, 7, false, true}, nil},
		{Setting{EnableConnect, 1}, Peer{DefaultWindow, 7, true, true}, nil},
		{Setting{EnableConnect, 0}, Peer{DefaultWindow, 7, true, true}, errTakenBack},
		{Setting{EnablePush, 0}, Peer{DefaultWindow, 7, true, false}, nil},
	} {
		after, err := ReadSettings(AppendSettings(nil, row.sent)[HeaderLen:], peer)
		require.Equal(t, row.err, err)
		require.Equal(t, row.want, after)
		peer = after
	}
}

func TestErrors(t *testing.T) {
	require.Equal(t, "NO_ERROR", NoError.String())
	require.Equal(t, "HTTP_1_1_REQUIRED", HTTP11Required.String())
	require.Equal(t, "code 0xe", (HTTP11Required + 1).String())
	require.EqualValues(t, 0xd, HTTP11Required)
	require.Equal(t, "http2: PROTOCOL_ERROR: PUSH_PROMISE, which nobody has allowed", errPush.Error())
	require.Same(t, errPush, errPush.On(3), "it remains that of the connection")
	require.Equal(t, &Error{Code: StreamClosed, Stream: 3, Why: errEnded.Why}, errEnded.On(3))
	require.Nil(t, (*Error)(nil).On(3))
}

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
