package http2

import (
	"bytes"

	"github.com/daimon-go/daimon/httpd/internal/syntax"
)

// DefaultUrgency is the urgency of a request that says nothing of it (RFC 9218 4.1). 0 is the most urgent.
const DefaultUrgency = 3

// Urgency finds the member u of a Priority field: an urgency from 0 to 7 (RFC 9218 4.1). The last one counts. Without one, and
// with one of another form, the urgency stays what it was. Whether a response is of use before it is whole does not matter here,
// since all responses of one urgency take turns.
func Urgency(priority []byte, before uint8) uint8 {
	for member := range bytes.SplitSeq(priority, []byte{','}) {
		item, _, _ := bytes.Cut(member, []byte{';'}) // it may have parameters
		item = bytes.Trim(item, syntax.Blank)
		if len(item) == 3 && item[0] == 'u' && item[1] == '=' && '0' <= item[2] && item[2] <= '7' {
			before = item[2] - '0'
		}
	}
	return before
}
