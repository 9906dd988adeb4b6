// Package httpd is going to be HTTP/1.1 on the reactor. So far it has the part that everything else stands on: how
// the octets of a request are understood.
//
// It is strict, without switches: what RFC 9112 lets a recipient repair it refuses. Each lenience of a server is a
// way for two of them to disagree about where a message ends, and that is how requests are smuggled.
//
//	octets ──▶ head (line by line, in place) ──▶ framing (none, a length, chunks, or a refusal) ──▶ chunks
//
// Rules are quoted by their sections of RFC 9110 and RFC 9112.
package httpd
