// Package deflate is the compression of WebSocket messages, permessage-deflate (RFC 7692): what sides offer and agree upon,
// and messages that are compressed and inflated. It knows no connection.
//
// A compressor of compress/flate takes about a megabyte, so no connection has one. Messages are compressed by a function
// without a state, which takes the earlier messages as a dictionary. Without context takeover nothing is kept between two
// messages. With it a [Codec] keeps the end of the messages that were sent and received.
package deflate
