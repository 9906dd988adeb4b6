package http2

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2/hpack"

	"github.com/daimon-go/daimon/httpd/internal/syntax"
)

// encode encodes fields: "name value|name value".
func encode(e *hpack.Encoder, fields string) {
	for field := range strings.SplitSeq(fields, "|") {
		name, value, _ := strings.Cut(field, " ")
		_ = e.WriteField(hpack.HeaderField{Name: name, Value: value, Sensitive: value == "a"})
	}
}

func block(fields string) []byte {
	var b bytes.Buffer
	encode(hpack.NewEncoder(&b), fields)
	return b.Bytes()
}

// read has a decoder read a block in pieces, and returns an *Error, a *syntax.Refusal, or what the head says:
// "method path?query host; name: value; …".
func read(d *Decoder, l Limits, end, trailers bool, pieces ...[]byte) any {
	var h Head
	d.Begin(&h, l, trailers)
	for _, p := range pieces {
		if err := d.Write(bytes.Clone(p)); err != nil {
			return err
		}
	}
	if err := d.End(end); err != nil {
		return err
	}
	if h.Refused != nil {
		return h.Refused
	}
	of := func(s syntax.Span) string { return string(s.Of(h.Text)) }
	if h.Path.From == h.Path.To { // of CONNECT
		h.Path = h.Target
	}
	said := fmt.Sprintf("%s %s?%s %s", of(h.Method), of(h.Path), of(h.Query), of(h.Authority))
	if d.Response {
		said = fmt.Sprint(h.Status)
	}
	count := [syntax.Kinds]uint8{h.Count[syntax.Ordinary]}
	for _, f := range h.Fields {
		said += "; " + of(f.Name) + ": " + of(f.Value)
		if f.Kind != syntax.Ordinary {
			count[f.Kind]++
		}
	}
	if count != h.Count {
		return fmt.Sprint(h.Count)
	}
	if h.Protocol.To > 0 {
		said += "; protocol " + of(h.Protocol)
	}
	if h.Length >= 0 || h.Continue {
		said += fmt.Sprintf("; %d bytes %v", h.Length, h.Continue)
	}
	if h.Urgency != DefaultUrgency {
		said += fmt.Sprintf("; urgency %d", h.Urgency)
	}
	return said
}

const (
	get     = ":method GET|:scheme https|:path /|:authority a"
	post    = ":method POST|:scheme https|:path /|:authority a"
	connect = ":method CONNECT|:authority a:443"
	socket  = ":method CONNECT|:scheme https|:path /chat|:authority a|:protocol websocket"
)

// Sections are of RFC 9113. Each is read whole, and in two frames wherever it can be cut, with its fields in the table and
// not.
func TestRequests(t *testing.T) {
	for name, row := range map[string]struct {
		fields string
		want   any
	}{
		"8.3.1 GET": {get, "GET /? a"},
		"8.3.1 other orders": {":path /a?b=c?|:authority [::1]:80|:scheme b|:method GET|x y",
			"GET /a?b=c? [::1]:80; x: y"},
		"8.3.1 Host alone":            {":method GET|:scheme http|:path /|host a", "GET /? a; host: a"},
		"8.3.1 both":                  {get + "|host A", "GET /? a; host: A"},
		"8.3.1 they differ":           {get + "|host b", errHost},
		"8.3.1 one is longer":         {get + "|host aa", errHost},
		"8.3.1 two of Host":           {get + "|host a|host a", errHost},
		"8.3.1 no host":               {":method GET|:scheme http|:path /", errHost},
		"8.3.1 an empty authority":    {":method GET|:scheme http|:path /|:authority ", errHost},
		"8.3.1 only a port":           {":method GET|:scheme http|:path /|:authority :80", errHost},
		"8.3.1 an empty Host":         {":method GET|:scheme http|:path /|host ", errHost},
		"8.3.1 a user":                {":method GET|:scheme http|:path /|:authority u@a", errHost},
		"8.3.1 an invalid Host":       {":method GET|:scheme http|:path /|host a/b", errHost},
		"8.3.1 OPTIONS of the server": {":method OPTIONS|:scheme http|:path *|:authority a", "OPTIONS *? a"},
		"8.3.1 GET of the server":     {":method GET|:scheme http|:path *|:authority a", errForm},
		"8.3.1 an absolute path":      {":method GET|:scheme http|:path http://a/|:authority a", errForm},
		"8.3.1 a relative path":       {":method OPTIONS|:scheme http|:path a|:authority a", errForm},
		"8.3.1 a blank in the path":   {":method GET|:scheme http|:path /a b|:authority a", errTarget},
		"8.3.1 a fragment":            {":method GET|:scheme http|:path /#a|:authority a", errTarget},
		"8.3.1 bytes above ASCII":     {":method GET|:scheme http|:path /\xe4|:authority a", "GET /\xe4? a"},
		"8.3.1 an empty path":         {":method GET|:scheme http|:path |:authority a", errMissing},
		"8.3.1 no path":               {":method GET|:scheme http|:authority a", errMissing},
		"8.3.1 no scheme":             {":method GET|:path /|:authority a", errMissing},
		"8.3.1 an empty scheme":       {":method GET|:scheme |:path /|:authority a", errMissing},
		"8.3.1 an invalid scheme":     {":method GET|:scheme a b|:path /|:authority a", errMissing},
		"8.3.1 no method":             {":scheme http|:path /|:authority a", errMissing},
		"8.3.1 an empty method":       {":method |:scheme http|:path /|:authority a", errMissing},
		"8.3.1 an invalid method":     {":method G(T|:scheme http|:path /|:authority a", errMissing},
		"8.2.1 nothing but a line":    {"", errName},
		"8.3 a pseudo-field late":     {":method GET|:scheme http|:authority a|x y|:path /", errLate},
		"8.3 after a cookie":          {":method GET|:scheme http|:authority a|cookie y|:path /", errLate},
		"8.3 :status":                 {get + "|:status 200", errUnknown},
		"8.3 an unknown one":          {get + "|:a b", errUnknown},
		"8.3 in upper case":           {get + "|:Path /", errUnknown},
		"8.3 the method twice":        {get + "|:method GET", errTwice},
		"8.3 the scheme twice":        {get + "|:scheme https", errTwice},
		"8.3 the path twice":          {get + "|:path /", errTwice},
		"8.3 the authority twice":     {get + "|:authority a", errTwice},
		"8.2.1 a name in upper case":  {get + "|X y", errName},
		"8.2.1 a colon in a name":     {get + "|x: y", errName},
		"8.2.1 an empty name":         {get + "| y", errName},
		"8.2.1 a byte above ASCII":    {get + "|x\xe4 y", errName},
		"8.2.1 NUL":                   {get + "|x \x00", errValue},
		"8.2.1 CR":                    {get + "|x a\rb", errValue},
		"8.2.1 LF":                    {get + "|x a\nb", errValue},
		"8.2.1 another control":       {get + "|x a\x7fb", errValue},
		"8.2.1 LF in a path":          {":method GET|:path /\n|:scheme http|:authority a", errValue},
		"8.2.1 LF in a cookie":        {get + "|cookie a\nb", errValue},
		"8.2.1 HTAB within":           {get + "|x a\tb\xff", "GET /? a; x: a\tb\xff"},
		"8.2.1 SP before":             {get + "|x  a", errValue},
		"8.2.1 SP after":              {get + "|x a ", errValue},
		"8.2.1 HTAB before":           {get + "|x \ta", errValue},
		"8.2.1 HTAB after":            {get + "|x a\t", errValue},
		"8.2.1 an empty value":        {get + "|x ", "GET /? a; x: "},
		"8.2.2 Connection":            {get + "|connection close", errConnection},
		"8.2.2 Keep-Alive":            {get + "|keep-alive 5", errConnection},
		"8.2.2 Proxy-Connection":      {get + "|proxy-connection a", errConnection},
		"8.2.2 Transfer-Encoding":     {get + "|transfer-encoding chunked", errConnection},
		"8.2.2 Upgrade":               {get + "|upgrade a", errConnection},
		"8.2.2 TE":                    {get + "|te trailers", "GET /? a; te: trailers"},
		"8.2.2 TE with more":          {get + "|te trailers, gzip", errTE},
		"8.2.2 TE without":            {get + "|te ", errTE},
		"8.2.3 a cookie":              {get + "|cookie a=b", "GET /? a; cookie: a=b"},
		"8.2.3 crumbs":                {get + "|x y|cookie a=b|cookie c=d|cookie e=f", "GET /? a; x: y; cookie: a=b; c=d; e=f"},
		"8.2.3 crumbs apart": {get + "|cookie a|cookie b|x y|cookie c|z |cookie d",
			"GET /? a; cookie: a; b; c; d; x: y; z: "},
		"8.2.3 two crumbs apart":        {get + "|cookie a|x y|cookie b", "GET /? a; cookie: a; b; x: y"},
		"8.1.1 a length":                {post + "|content-length 5", "POST /? a; content-length: 5; 5 bytes false"},
		"8.1.1 a sign":                  {post + "|content-length +5", errLength},
		"8.1.1 no digits":               {post + "|content-length ", errLength},
		"8.1.1 a list":                  {post + "|content-length 5, 5", errLength},
		"8.1.1 an overflow":             {post + "|content-length 9223372036854775808", errLength},
		"8.1.1 twice":                   {post + "|content-length 5|content-length 5", errLength},
		"8.5 CONNECT":                   {connect, errConnect},
		"8.5 CONNECT with a scheme":     {connect + "|:scheme https", errConnectForm},
		"8.5 CONNECT with a path":       {connect + "|:path /", errConnectForm},
		"8.5 CONNECT without authority": {":method CONNECT|host a:443", errConnectForm},
		"8.5 CONNECT of nothing":        {":method CONNECT|:authority ", errHost},
		"8441 4 an extended CONNECT":    {socket, "CONNECT /chat? a; protocol websocket"},
		"8441 4 without a path":         {":method CONNECT|:scheme https|:authority a|:protocol b", errMissing},
		"8441 4 without a scheme":       {":method CONNECT|:path /|:authority a|:protocol b", errMissing},
		"8441 4 without authority":      {":method CONNECT|:scheme https|:path /|:protocol b", errHost},
		"8441 4 of another method":      {get + "|:protocol websocket", errProtocol},
		"8441 4 an invalid protocol":    {":method CONNECT|:scheme https|:path /|:authority a|:protocol a b", errProtocol},
		"8441 4 an empty protocol":      {":method CONNECT|:scheme https|:path /|:authority a|:protocol ", errProtocol},
		"9110 10.1.1 100-continue":      {post + "|expect 100-Continue", "POST /? a; expect: 100-Continue; -1 bytes true"},
		"9110 10.1.1 another mistake":   {get + "|host b|expect a", errHost},
		"9110 10.1.1 another":           {post + "|expect 100-continue|expect a", errExpectation},
		"9110 10.1.1 for nothing": {post + "|expect 100-continue|content-length 0",
			"POST /? a; expect: 100-continue; content-length: 0; 0 bytes false"},
		"9218 5 a priority": {get + "|priority u=0, i", "GET /? a; priority: u=0, i; urgency 0"},
		"9218 5 in two lines": {get + "|priority u=7|priority i",
			"GET /? a; priority: u=7; priority: i; urgency 7"},
		"9218 5 an invalid one": {get + "|priority U", "GET /? a; priority: U"},
	} {
		b := block(row.fields)
		d := NewDecoder(new([]byte))
		require.Equal(t, row.want, read(d, Limits{}, false, false, b), name)
		for i := range len(b) + 1 {
			cut := read(NewDecoder(new([]byte)), Limits{}, false, false, b[:i], nil, b[i:])
			require.Equal(t, row.want, cut, "%s, after %d bytes", name, i)
		}
		require.Equal(t, "GET /? a", read(d, Limits{}, true, false, block(get)), name)
	}
}

// What depends on the end of the stream or on the server.
func TestEndsOfRequests(t *testing.T) {
	for name, row := range map[string]struct {
		fields string
		want   any
	}{
		"8.1.1 a length of nothing":      {post + "|content-length 0", "POST /? a; content-length: 0; 0 bytes false"},
		"8.1.1 a length that is missing": {post + "|content-length 1", errLength},
		"9110 10.1.1 nothing to come":    {post + "|expect 100-continue", "POST /? a; expect: 100-continue"},
	} {
		require.Equal(t, row.want, read(NewDecoder(new([]byte)), Limits{}, true, false, block(row.fields)), name)
	}
}

// Sections are of RFC 9113.
func TestResponses(t *testing.T) {
	for name, row := range map[string]struct {
		fields string
		want   any
	}{
		"8.3.2 a status":                 {":status 200", "200"},
		"8.3.2 fields":                   {":status 404|server a|x y", "404; server: a; x: y"},
		"8.3.2 one that has no name":     {":status 599", "599"},
		"8.3.2 none":                     {"x y", errStatus},
		"8.3.2 nothing":                  {":status ", errStatus},
		"8.3.2 two digits":               {":status 20", errStatus},
		"8.3.2 four digits":              {":status 2000", errStatus},
		"8.3.2 no digits":                {":status +20", errStatus},
		"8.3.2 with a reason":            {":status 200 OK", errStatus},
		"9110 15 too small":              {":status 099", errStatus},
		"9110 15 too large":              {":status 600", errStatus},
		"8.3 twice":                      {":status 200|:status 200", errTwice},
		"8.3 after a field":              {"x y|:status 200", errLate},
		"8.3 of a request":               {":status 200|:path /", errUnknown},
		"8.3 an unknown one":             {":a b", errUnknown},
		"8.6 Switching Protocols":        {":status 101", errSwitching},
		"8.1 an interim one":             {":status 103|link </a>", "103; link: </a>"},
		"8.2.1 a name in upper case":     {":status 200|X y", errName},
		"8.2.1 LF in a value":            {":status 200|x a\nb", errValue},
		"8.2.2 Connection":               {":status 200|connection close", errConnection},
		"8.2.2 Transfer-Encoding":        {":status 200|transfer-encoding chunked", errConnection},
		"8.2.2 TE":                       {":status 200|te trailers", errTE},
		"8.2.3 Cookie means nothing":     {":status 200|cookie a|cookie b", "200; cookie: a; cookie: b"},
		"8.1.1 a length":                 {":status 200|content-length 5", "200; content-length: 5; 5 bytes false"},
		"8.1.1 two":                      {":status 200|content-length 5|content-length 5", errLength},
		"8.1.1 a sign":                   {":status 200|content-length -5", errLength},
		"6.1 Host and Expect mean none":  {":status 200|host a|expect b", "200; host: a; expect: b"},
		"10.5.1 as many fields as may":   {":status 200" + strings.Repeat("|x y", 4), "200" + strings.Repeat("; x: y", 4)},
		"10.5.1 one more":                {":status 200" + strings.Repeat("|x y", 5), errManyFields},
		"10.5.1 a field that is too big": {":status 200|x " + strings.Repeat("y", 400), errLargeHead},
	} {
		b := block(row.fields)
		for i := range len(b) + 1 {
			d := NewDecoder(new([]byte))
			d.Response = true
			require.Equal(t, row.want, read(d, Limits{Head: 400, Fields: 4}, false, false, b[:i], nil, b[i:]), "%s, after %d bytes", name, i)
			require.Equal(t, "204", read(d, Limits{}, true, false, block(":status 204")), name)
		}
	}
	for fields, want := range map[string]any{ // at the end of the stream
		":status 200|content-length 5": "200; content-length: 5; 5 bytes false", // which may be the answer to HEAD
		":status 103":                  errInterim,
	} {
		d := NewDecoder(new([]byte))
		d.Response = true
		require.Equal(t, want, read(d, Limits{}, true, false, block(fields)))
		require.Equal(t, errUnknown, read(d, Limits{}, true, true, block(":path /")))
		require.Equal(t, errLate, read(d, Limits{}, true, true, block(":status 200")))
		require.Equal(t, "0; x: y", read(d, Limits{}, true, true, block("x y")))
	}
}

func TestTrailers(t *testing.T) {
	for name, row := range map[string]struct {
		fields string
		want   any
	}{
		"8.1 trailers":                {"x y|grpc-status 0", " ? ; x: y; grpc-status: 0"},
		"8.1 a pseudo-field":          {"x y|:path /", errLate},
		"8.1 only that":               {":path /", errLate},
		"8.1 another":                 {":status 200", errUnknown},
		"8.2.1 a name in upper case":  {"X y", errName},
		"8.2.1 LF":                    {"x a\nb", errValue},
		"8.2.2 Connection":            {"connection close", errConnection},
		"9110 6.5.1 Content-Length":   {"content-length 5", errTrailer},
		"9110 6.5.1 Host":             {"host a", errTrailer},
		"9110 6.5.1 Expect":           {"expect a", errTrailer},
		"9110 6.5.1 Priority does no": {"priority u=1", " ? ; priority: u=1"},
	} {
		require.Equal(t, row.want, read(NewDecoder(new([]byte)), Limits{}, true, true, block(row.fields)), name)
	}
	require.Equal(t, errTrailersEnd, read(NewDecoder(new([]byte)), Limits{}, false, true, block("x y")))
	require.Equal(t, errLargeTrailers, read(NewDecoder(new([]byte)), Limits{Head: 33}, true, true, block("x y")))
	require.Equal(t, " ? ; x: y", read(NewDecoder(new([]byte)), Limits{Head: 34}, true, true, block("x y")))
}

// After a head that is too large the next one is understood: what it has added to the table is there.
func TestLimits(t *testing.T) {
	many := strings.Repeat("|x y", 4)
	crumbs := strings.Repeat("|cookie a", 8)
	long := strings.Repeat("a", maxHead)
	size := len(":method"+"GET"+":scheme"+"https"+":path"+"/"+":authority"+"a") + 4*32
	for name, row := range map[string]struct {
		l      Limits
		fields string
		want   any
	}{
		"as many fields as may be": {Limits{Fields: 4}, get + many, "GET /? a; x: y; x: y; x: y; x: y"},
		"one more":                 {Limits{Fields: 3}, get + many, errManyFields},
		"as many crumbs as may be": {Limits{Fields: 4}, get + many + crumbs,
			"GET /? a; x: y; x: y; x: y; x: y; cookie: a; a; a; a; a; a; a; a"},
		"one crumb more":            {Limits{Fields: 4}, get + crumbs + "|cookie a", errManyFields},
		"as large as may be":        {Limits{Head: size + 34}, get + "|x y", "GET /? a; x: y"},
		"a byte more":               {Limits{Head: size + 33}, get + "|x y", errLargeHead},
		"a crumb more":              {Limits{Head: size + 39}, get + "|cookie a", "GET /? a; cookie: a"},
		"a larger crumb":            {Limits{Head: size + 38}, get + "|cookie a", errLargeHead},
		"a target that is too long": {Limits{}, ":path /" + long[:maxHead/4] + "|:method GET", errLongTarget},
		"one that is not":           {Limits{Head: 1 << 20}, ":path /" + long[:maxHead/4] + "|:method GET", errMissing},
		"the default of a head":     {Limits{}, get + "|x " + long[size+33:], "GET /? a; x: " + long[size+33:]},
		"more than half a block":    {Limits{}, get + "|x " + strings.Repeat("a", 110<<10), errLargeHead},
		"the longest target": {Limits{Head: 400}, ":method GET|:authority a|:scheme a|:path /" + long[1:100],
			"GET /" + long[1:100] + "? a"},
		"a byte more of it": {Limits{Head: 400}, ":method GET|:authority a|:scheme a|:path /" + long[:100],
			errLongTarget},
		"more than that":        {Limits{}, get + "|x " + long[size+32:], errLargeHead},
		"the default of fields": {Limits{}, get + strings.Repeat("|x y", maxFields+1), errManyFields},
		"a mistake after that":  {Limits{Fields: 3}, get + many + "|X y", errManyFields},
		"a mistake before that": {Limits{Fields: 3}, get + "|X y" + many, errName},
	} {
		var b bytes.Buffer
		e, d := hpack.NewEncoder(&b), NewDecoder(new([]byte))
		encode(e, row.fields)
		_, accepted := row.want.(string)
		if !accepted {
			encode(e, "kept in-the-table")
		}
		require.Equal(t, row.want, read(d, row.l, true, false, b.Bytes()), name)
		if b.Reset(); !accepted {
			encode(e, get+"|kept in-the-table")
			require.Less(t, b.Len(), 10)
			require.Equal(t, "GET /? a; kept: in-the-table", read(d, Limits{}, true, false, b.Bytes()), name)
		}
	}
}
