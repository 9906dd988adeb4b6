package deflate

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// answers are what a server says to the fields of a client: without context takeover, and with it if that is another answer.
var answers = []struct {
	name          string
	fields        []string
	without, with string
	terms         Terms // with takeover
}{
	{"none", nil, "", "", Terms{}},
	{"an empty field", []string{" , ,"}, "", "", Terms{}},
	{"another extension", []string{"permessage-bzip2, x-webkit-deflate-frame; no_context_takeover"}, "", "", Terms{}},
	{"7.1 nothing is asked for", []string{"permessage-deflate"}, both, "permessage-deflate", Terms{true, true}},
	{"7.1.1.1 the server without", []string{"permessage-deflate; server_no_context_takeover"},
		both, "permessage-deflate; server_no_context_takeover", Terms{Receives: true}},
	{"7.1.1.2 the client without", []string{"permessage-deflate;client_no_context_takeover"},
		both, "permessage-deflate; client_no_context_takeover", Terms{Sends: true}},
	{"7.1.1 both without", []string{"permessage-deflate; client_no_context_takeover; server_no_context_takeover"}, both, both, Terms{}},
	{"7.1.1.1 with a value", []string{"permessage-deflate; server_no_context_takeover=1"}, "", "", Terms{}},
	{"7.1.1.2 with a value", []string{"permessage-deflate; client_no_context_takeover=true"}, "", "", Terms{}},
	{"7.1.2.1 a window of 15", []string{"permessage-deflate; server_max_window_bits=15"},
		both + "; server_max_window_bits=15", "permessage-deflate; server_max_window_bits=15", Terms{true, true}},
	{"7.1.2.1 a window of 14", []string{"permessage-deflate; server_max_window_bits=14"}, "", "", Terms{}},
	{"7.1.2.1 a window of 8", []string{"permessage-deflate; server_max_window_bits=8"}, "", "", Terms{}},
	{"7.1.2.1 a window without a value", []string{"permessage-deflate; server_max_window_bits"}, "", "", Terms{}},
	{"7.1.2.1 a window of 16", []string{"permessage-deflate; server_max_window_bits=16"}, "", "", Terms{}},
	{"7.1.2.1 a leading zero", []string{"permessage-deflate; server_max_window_bits=015"}, "", "", Terms{}},
	{"7.1.2.1 a sign", []string{"permessage-deflate; server_max_window_bits=+15"}, "", "", Terms{}},
	{"7.1.2.1 words", []string{"permessage-deflate; server_max_window_bits=many"}, "", "", Terms{}},
	{"7.1.2.2 what browsers say", []string{"permessage-deflate; client_max_window_bits"}, both, "permessage-deflate", Terms{true, true}},
	{"7.1.2.2 with a value", []string{"permessage-deflate; client_max_window_bits=8"}, both, "permessage-deflate", Terms{true, true}},
	{"7.1.2.2 a window of 7", []string{"permessage-deflate; client_max_window_bits=7"}, "", "", Terms{}},
	{"7.1.2.2 a window of 016", []string{"permessage-deflate; client_max_window_bits=010"}, "", "", Terms{}},
	{"7.1 a parameter twice", []string{"permessage-deflate; client_max_window_bits; client_max_window_bits"}, "", "", Terms{}},
	{"7.1 one twice, with two values", []string{"permessage-deflate; client_max_window_bits=10; client_max_window_bits=11"}, "", "", Terms{}},
	{"7.1 an unknown parameter", []string{"permessage-deflate; x"}, "", "", Terms{}},
	{"7.1 an unknown one behind known ones", []string{"permessage-deflate; client_max_window_bits; level=9"}, "", "", Terms{}},
	{"7.1.3 the example, a fallback", []string{"permessage-deflate; client_max_window_bits; server_max_window_bits=10, permessage-deflate; client_max_window_bits"},
		both, "permessage-deflate", Terms{true, true}},
	{"7.1.3 the first of two", []string{"permessage-deflate; server_no_context_takeover, permessage-deflate"},
		both, "permessage-deflate; server_no_context_takeover", Terms{Receives: true}},
	{"5 a fallback in a second field", []string{"x-other; a=b", "permessage-deflate; x, permessage-deflate; client_no_context_takeover"},
		both, "permessage-deflate; client_no_context_takeover", Terms{Sends: true}},
	{"RFC 6455 9.1 a quoted value", []string{`permessage-deflate; server_max_window_bits="15"`},
		both + "; server_max_window_bits=15", "permessage-deflate; server_max_window_bits=15", Terms{true, true}},
	{"RFC 6455 9.1 an escaped one", []string{`permessage-deflate; server_max_window_bits="1\5"`},
		both + "; server_max_window_bits=15", "permessage-deflate; server_max_window_bits=15", Terms{true, true}},
	{"RFC 6455 9.1 a quoted value that is invalid", []string{`permessage-deflate; server_max_window_bits="16", permessage-deflate`},
		both, "permessage-deflate", Terms{true, true}},
	{"RFC 6455 9.1 blanks", []string{"\tpermessage-deflate ;  server_max_window_bits = 15\t, "},
		both + "; server_max_window_bits=15", "permessage-deflate; server_max_window_bits=15", Terms{true, true}},
	{"another case", []string{"Permessage-Deflate"}, "", "", Terms{}},
}

const both = "permessage-deflate; server_no_context_takeover; client_no_context_takeover"

func fields(texts []string) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for _, text := range texts {
			if !yield([]byte(text)) {
				return
			}
		}
	}
}

func TestAnswers(t *testing.T) {
	for _, row := range answers {
		t.Run(row.name, func(t *testing.T) {
			terms, answer, err := Answer(fields(row.fields), false)
			require.NoError(t, err)
			require.Equal(t, row.without, answer)
			require.Zero(t, terms)
			terms, answer, err = Answer(fields(row.fields), true)
			require.NoError(t, err)
			require.Equal(t, row.with, answer)
			require.Equal(t, row.terms, terms)
		})
	}
}

// RFC 6455 9.1: whoever sees such a field fails the connection.
func TestMalformedExtensions(t *testing.T) {
	for _, text := range []string{
		";", "=", "permessage-deflate;", "permessage-deflate; ;x", "permessage-deflate x", "permessage-deflate; a b",
		"permessage-deflate; a=", "permessage-deflate; a=,", `permessage-deflate; a="`, `permessage-deflate; a="b`,
		`permessage-deflate; a=""`, `permessage-deflate; a="b c"`, `permessage-deflate; a="b"c`, `permessage-deflate; a="b\`,
		`permessage-deflate; a="\"`, "permessage-deflate; =15", "permessage-deflate, (", "permessage/deflate", "permessage-deflate; a=b=c",
		"permessage-deflate; a=\x80",
	} {
		for _, all := range [][]string{{text}, {"permessage-deflate", text}, {text, "permessage-deflate"}, {"a, " + text}} {
			terms, answer, err := Answer(fields(all), true)
			require.Equal(t, ErrSyntax, err, "%q", all)
			require.Empty(t, answer)
			require.Zero(t, terms)
			_, on, err := Accept(fields(all), true)
			require.Equal(t, ErrSyntax, err, "%q", all)
			require.False(t, on)
		}
	}
}

// What a client does with the answers to its two offers.
func TestAccept(t *testing.T) {
	none := errors.New("refused")
	for _, row := range []struct {
		name          string
		answer        []string
		without, with any // an error, nil for no compression, or Terms
	}{
		{"no answer", nil, nil, nil},
		{"an empty one", []string{""}, nil, nil},
		{"7.1.1 both without", []string{both}, Terms{}, Terms{}},
		{"7.1 with takeover", []string{"permessage-deflate"}, none, Terms{true, true}},
		{"7.1.1.1 the server without", []string{"permessage-deflate; server_no_context_takeover"}, Terms{}, Terms{Sends: true}},
		{"7.1.1.2 the client without", []string{"permessage-deflate; client_no_context_takeover"}, none, Terms{Receives: true}},
		{"7.1.2.1 a small window of the server", []string{both + "; server_max_window_bits=8"}, Terms{}, Terms{}},
		{"7.1.2.1 without a value", []string{both + "; server_max_window_bits"}, none, none},
		{"7.1.2.1 invalid", []string{both + "; server_max_window_bits=7"}, none, none},
		{"7.1.2.2 it was not offered", []string{both + "; client_max_window_bits=15"}, none, none},
		{"7.1.2.2 without a value", []string{both + "; client_max_window_bits"}, none, none},
		{"7.1 an unknown parameter", []string{both + "; x=1"}, none, none},
		{"7.1 a parameter twice", []string{both + "; client_no_context_takeover"}, none, none},
		{"7.1 a parameter with a value", []string{"permessage-deflate; client_no_context_takeover; server_no_context_takeover=0"}, none, none},
		{"RFC 6455 4.1 another extension", []string{"permessage-bzip2"}, none, none},
		{"RFC 6455 4.1 one more", []string{both + ", x"}, none, none},
		{"7 twice", []string{both, both}, none, none},
	} {
		t.Run(row.name, func(t *testing.T) {
			for takeover, want := range map[bool]any{false: row.without, true: row.with} {
				terms, on, err := Accept(fields(row.answer), takeover)
				if want == none {
					require.Equal(t, ErrAnswer, err)
				} else {
					require.NoError(t, err)
				}
				agreed, is := want.(Terms)
				require.Equal(t, is, on)
				require.Equal(t, agreed, terms)
			}
		})
	}
}

// A client and a server that are both ours agree, and see it the same.
func TestOffers(t *testing.T) {
	for _, client := range []bool{false, true} {
		for _, server := range []bool{false, true} {
			theirs, answer, err := Answer(fields([]string{Offer(client)}), server)
			require.NoError(t, err)
			ours, on, err := Accept(fields([]string{answer}), client)
			require.NoError(t, err)
			require.True(t, on)
			require.Equal(t, Terms{Sends: theirs.Receives, Receives: theirs.Sends}, ours)
			require.Equal(t, Terms{client && server, client && server}, ours)
		}
	}
}
