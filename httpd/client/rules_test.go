package client_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/httpd/client"
)

const (
	ok    = "HTTP/1.1 200 OK\n"
	coded = ok + "Transfer-Encoding: chunked\n\n"
)

// answerRow is an answer, and what is to be made of it.
type answerRow struct {
	says    string
	method  string // "" is GET
	upgrade string
	status  int // 0: the Call, or its answer, fails
	content string
	trailer string // X-Sum
	length  int64  // Response.Length, if it is not that of the content
	keeps   bool   // the connection carries further requests
	ends    bool   // it ends behind the answer
	err     string // a part of why
}

// good are answers that are read to their end.
var good = map[string]answerRow{
	"a length":                              {says: hello, status: 200, content: "hello", keeps: true},
	"no reason":                             {says: "HTTP/1.1 200\nContent-Length: 0\n\n", status: 200, keeps: true},
	"an unknown status":                     {says: "HTTP/1.1 599 ?\nContent-Length: 0\n\n", status: 599, keeps: true},
	"a later minor version":                 {says: "HTTP/1.9 200 OK\nContent-Length: 0\n\n", status: 200, keeps: true},
	"chunks":                                {says: coded + "3\nhel\n002\nlo\n0\n\n", status: 200, content: "hello", length: -1, keeps: true},
	"chunks with extensions":                {says: coded + "3;a;b=c\nhel\n2 ; q=\"\\\"x\"\nlo\n0;e\n\n", status: 200, content: "hello", length: -1, keeps: true},
	"trailers":                              {says: coded + "1\nx\n0\nX-Sum: 9\n\n", status: 200, content: "x", trailer: "9", length: -1, keeps: true},
	"only the last chunk":                   {says: coded + "0\n\n", status: 200, length: -1, keeps: true},
	"until the end":                         {says: ok + "\nhello", status: 200, content: "hello", length: -1, ends: true},
	"nothing until the end":                 {says: ok + "\n", status: 200, length: -1, ends: true},
	"the last":                              {says: ok + "Connection: x, Close\nContent-Length: 5\n\nhello", status: 200, content: "hello"},
	"the last, in chunks":                   {says: ok + "Connection: close\nTransfer-Encoding: chunked\n\n5\nhello\n0\n\n", status: 200, content: "hello", length: -1},
	"of HTTP/1.0":                           {says: "HTTP/1.0 200 OK\nContent-Length: 5\n\nhello", status: 200, content: "hello"},
	"of HTTP/1.0, and stays":                {says: "HTTP/1.0 200 OK\nConnection: keep-alive\nContent-Length: 5\n\nhello", status: 200, content: "hello", keeps: true},
	"204":                                   {says: "HTTP/1.1 204 No Content\n\n", status: 204, keeps: true},
	"204 with a length":                     {says: "HTTP/1.1 204 No Content\nContent-Length: 5\n\n", status: 204, keeps: true},
	"304 with a length":                     {says: "HTTP/1.1 304 Not Modified\nContent-Length: 5\n\n", status: 304, keeps: true},
	"304 that would be in chunks":           {says: "HTTP/1.1 304 Not Modified\nTransfer-Encoding: chunked\n\n", status: 304, keeps: true},
	"HEAD with a length":                    {says: ok + "Content-Length: 5\n\n", method: "HEAD", status: 200, length: 5, keeps: true},
	"HEAD that would be in chunks":          {says: coded, method: "HEAD", status: 200, length: -1, keeps: true},
	"HEAD of what ends with the connection": {says: ok + "\n", method: "HEAD", status: 200, length: -1, keeps: true},
	"after interim answers":                 {says: "HTTP/1.1 100 Continue\n\nHTTP/1.1 103 Early Hints\nLink: x\n\n" + hello, status: 200, content: "hello", keeps: true},
	"after 32 of them":                      {says: strings.Repeat("HTTP/1.1 102 Processing\n\n", 32) + hello, status: 200, content: "hello", keeps: true},
	"bytes behind it":                       {says: hello + "x", status: 200, content: "hello"},
	"another answer behind it":              {says: hello + hello, status: 200, content: "hello"},
	"bytes behind chunks":                   {says: coded + "5\nhello\n0\n\n\n", status: 200, content: "hello", length: -1},
	"content of 204":                        {says: "HTTP/1.1 204 No Content\nContent-Length: 5\n\nhello", status: 204},
	"content of 304":                        {says: "HTTP/1.1 304 Not Modified\n\nhello", status: 304},
	"content of HEAD":                       {says: hello, method: "HEAD", status: 200, length: 5},
	"a protocol not asked for in an ordinary answer": {says: ok + "Upgrade: h2c\nConnection: upgrade\nContent-Length: 0\n\n", status: 200, keeps: true},
}

// bad are answers that fail, or whose content does.
var bad = map[string]answerRow{
	"nothing":                 {says: "", ends: true, err: "ended before the answer"},
	"not HTTP":                {says: "SSH-2.0-x\n\n", err: "status line"},
	"an empty line first":     {says: "\n" + hello, err: "status line"},
	"HTTP/2":                  {says: "HTTP/2.0 200 OK\nContent-Length: 0\n\n", err: "major version"},
	"a lower case version":    {says: "http/1.1 200 OK\nContent-Length: 0\n\n", err: "version"},
	"two digits":              {says: "HTTP/1.1 20 OK\nContent-Length: 0\n\n", err: "status line"},
	"four digits":             {says: "HTTP/1.1 2000 OK\nContent-Length: 0\n\n", err: "status line"},
	"a status of 99":          {says: "HTTP/1.1 099 OK\nContent-Length: 0\n\n", err: "status line"},
	"a status of 600":         {says: "HTTP/1.1 600 OK\nContent-Length: 0\n\n", err: "status code"},
	"two spaces":              {says: "HTTP/1.1  200 OK\nContent-Length: 0\n\n", err: "status line"},
	"a tab":                   {says: "HTTP/1.1\t200 OK\nContent-Length: 0\n\n", err: "status line"},
	"a line without an end":   {says: "HTTP/1.1 200 " + strings.Repeat("x", 17<<10), err: "too long"},
	"a head without an end":   {says: ok + strings.Repeat("X: "+strings.Repeat("y", 1000)+"\n", 70), err: "than the limit allows"},
	"too many fields":         {says: ok + strings.Repeat("X: y\n", 101) + "\n", err: "too many fields"},
	"an obsolete fold":        {says: ok + "X: y\n z\nContent-Length: 0\n\n", err: "white space"},
	"a bare LF":               {says: ok + "X: y␊Content-Length: 0\n\n", err: "CRLF"},
	"a bare CR":               {says: ok + "X: y␍Content-Length: 0\n\n", err: "control"},
	"a NUL":                   {says: ok + "X: y\x00\nContent-Length: 0\n\n", err: "control"},
	"a space before a colon":  {says: ok + "Content-Length : 0\n\n", err: "field name"},
	"no colon":                {says: ok + "Content-Length 0\n\n", err: "colon"},
	"two framings":            {says: ok + "Content-Length: 5\nTransfer-Encoding: chunked\n\n0\n\n", err: "beside"},
	"two lengths":             {says: ok + "Content-Length: 5\nContent-Length: 6\n\nhello", err: "Content-Length"},
	"the same length twice":   {says: ok + "Content-Length: 5\nContent-Length: 5\n\nhello", err: "Content-Length"},
	"a list of lengths":       {says: ok + "Content-Length: 5, 5\n\nhello", err: "Content-Length"},
	"a negative length":       {says: ok + "Content-Length: -1\n\n", err: "Content-Length"},
	"a length with a sign":    {says: ok + "Content-Length: +5\n\nhello", err: "Content-Length"},
	"a length of nothing":     {says: ok + "Content-Length:\n\n", err: "Content-Length"},
	"a length of 2^64":        {says: ok + "Content-Length: 18446744073709551621\n\nhello", err: "Content-Length"},
	"a bad length of 204":     {says: "HTTP/1.1 204 No Content\nContent-Length: x\n\n", err: "Content-Length"},
	"gzip":                    {says: ok + "Transfer-Encoding: gzip\n\n0\n\n", ends: true, err: "Transfer-Encoding"},
	"gzip in chunks":          {says: ok + "Transfer-Encoding: gzip, chunked\n\n0\n\n", err: "Transfer-Encoding"},
	"chunks twice":            {says: ok + "Transfer-Encoding: chunked\nTransfer-Encoding: chunked\n\n0\n\n", err: "chunked"},
	"chunks of HTTP/1.0":      {says: "HTTP/1.0 200 OK\nTransfer-Encoding: chunked\n\n0\n\n", err: "HTTP/1.0"},
	"chunks of 204":           {says: "HTTP/1.1 204 No Content\nTransfer-Encoding: chunked\n\n0\n\n", err: "1xx or 204"},
	"chunks of 103":           {says: "HTTP/1.1 103 Early Hints\nTransfer-Encoding: chunked\n\n0\n\n" + hello, err: "1xx or 204"},
	"content of 103":          {says: "HTTP/1.1 103 Early Hints\nContent-Length: 5\n\nhello" + hello, err: "status line"},
	"33 interim answers":      {says: strings.Repeat("HTTP/1.1 102 Processing\n\n", 33) + hello, err: "interim"},
	"101 unasked":             {says: "HTTP/1.1 101 Switching Protocols\nConnection: upgrade\nUpgrade: x\n\n", err: "switched"},
	"101 to another protocol": {says: "HTTP/1.1 101 Switching Protocols\nConnection: upgrade\nUpgrade: y\n\n", upgrade: "x", err: "another protocol"},
	"101 without Connection":  {says: "HTTP/1.1 101 Switching Protocols\nUpgrade: x\n\n", upgrade: "x", err: "another protocol"},
	"101 of HTTP/1.0":         {says: "HTTP/1.0 101 Switching Protocols\nConnection: upgrade\nUpgrade: x\n\n", upgrade: "x", err: "another protocol"},
	"a chunk without a size":  {says: coded + "\nhello\n0\n\n", err: "chunk size"},
	"a size with a sign":      {says: coded + "+5\nhello\n0\n\n", err: "chunk size"},
	"a size with a prefix":    {says: coded + "0x5\nhello\n0\n\n", err: "chunk size"},
	"a size of 2^64":          {says: coded + "10000000000000005\nhello\n0\n\n", err: "chunk size"},
	"a size line without CR":  {says: coded + "5␊hello\n0\n\n", err: "chunk size"},
	"an endless size line":    {says: coded + "5;" + strings.Repeat("x", 300) + "\nhello\n0\n\n", err: "too long"},
	"a chunk that is longer":  {says: coded + "3\nhello\n0\n\n", err: "CRLF"},
	"a trailer that frames":   {says: coded + "0\nContent-Length: 5\n\n", err: "trailer"},
	"trailers without an end": {says: coded + "0\n" + strings.Repeat("X: "+strings.Repeat("y", 1000)+"\n", 10), err: "too large"},
	"fewer than announced":    {says: ok + "Content-Length: 6\n\nhello", ends: true, err: "unexpected EOF"},
	"no last chunk":           {says: coded + "5\nhello\n", ends: true, err: "unexpected EOF"},
}

// TestAnswers reads good and bad answers, as a whole and byte by byte, or in 500 pieces if they are long.
func TestAnswers(t *testing.T) {
	for _, rows := range []map[string]answerRow{good, bad} {
		for name, row := range rows {
			t.Run(name, func(t *testing.T) {
				script := func(p *peer) {
					p.ask()
					piece := 1 + len(row.says)/500
					if p.path == "/whole" {
						piece = 2*len(row.says) + 1
					}
					for text := range slices.Chunk([]byte(raw(row.says)), piece) {
						_, _ = p.Write(text)
						_ = p.Co().Sleep(time.Microsecond)
					}
					if !row.ends {
						p.ask()
					}
				}
				play(t, script, func(s *scene, co *coro.Co) {
					row.read(s, co, "/whole")
					row.read(s, co, "/cut")
				})
			})
		}
	}
}

// read makes a Call that gets the answer.
func (row answerRow) read(s *scene, co *coro.Co, target string) {
	o := &client.Origin{Address: at}
	answer, content, err := fetch(co, &client.Call{Origin: o, Method: row.method, Target: target, Upgrade: row.upgrade})
	if row.status == 0 {
		require.ErrorContains(s, err, row.err)
		require.ErrorAs(s, err, new(*client.Error))
		if answer != nil {
			_, again := answer.Peek()
			require.Equal(s, err, again)
			require.NoError(s, answer.Close())
		}
		require.Zero(s, o.Conns())
		return
	}
	require.NoError(s, err)
	require.Equal(s, row.status, answer.Status())
	require.Equal(s, row.content, content)
	require.Equal(s, row.trailer, string(answer.Trailer("X-Sum")))
	length := row.length
	if length == 0 {
		length = int64(len(row.content))
	}
	require.Equal(s, length, answer.Length())
	require.NoError(s, answer.Close())
	_, err = answer.Peek()
	require.ErrorIs(s, err, io.EOF)
	kept := 0
	if row.keeps {
		kept = 1
	}
	if target == "/whole" || row.keeps { // what comes later is behind it when the connection is used again
		require.Equal(s, kept, o.Conns())
	}
	o.Close()
}

// TestAnswersThatAreCut ends or resets the connection behind each byte of an answer. Only an answer that lasts until the end of the
// connection has one then.
func TestAnswersThatAreCut(t *testing.T) {
	for name, row := range good {
		text := raw(row.says)
		if row.keeps && len(text) < 400 || row.ends {
			t.Run(name, func(t *testing.T) {
				script := func(p *peer) {
					var n, reset int
					p.ask()
					_, _ = fmt.Sscanf(p.path, "/%d/%d", &n, &reset)
					_, _ = io.WriteString(p, text[:n])
					if reset == 1 {
						_ = p.Co().Sleep(time.Millisecond)
						p.Under().Abort()
					}
				}
				play(t, script, func(s *scene, co *coro.Co) {
					for n := range len(text) {
						for reset := range 2 {
							o := &client.Origin{Address: at}
							answer, content, err := fetch(co, &client.Call{Origin: o, Method: row.method, Target: fmt.Sprintf("/%d/%d", n, reset)})
							if row.ends && reset == 0 && err == nil {
								require.Equal(s, row.content[:len(content)], content)
								require.Equal(s, n, len(text)-len(row.content)+len(content))
							} else {
								require.ErrorAs(s, err, new(*client.Error), "%q", text[:n])
							}
							if answer != nil {
								require.NoError(s, answer.Close())
							}
							require.Zero(s, o.Conns())
						}
					}
				})
			})
		}
	}
}
