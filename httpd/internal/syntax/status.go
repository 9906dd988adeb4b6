package syntax

// StatusText returns the reason phrase of a status code (RFC 9110 15), or "" for an unknown one.
func StatusText(code int) string { return texts[code] }

var texts = map[int]string{
	100: "Continue", 101: "Switching Protocols", 102: "Processing", 103: "Early Hints",
	200: "OK", 201: "Created", 202: "Accepted", 203: "Non-Authoritative Information", 204: "No Content",
	205: "Reset Content", 206: "Partial Content", 207: "Multi-Status", 208: "Already Reported", 226: "IM Used",
	300: "Multiple Choices", 301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified",
	305: "Use Proxy", 307: "Temporary Redirect", 308: "Permanent Redirect",
	400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found",
	405: "Method Not Allowed", 406: "Not Acceptable", 407: "Proxy Authentication Required", 408: "Request Timeout",
	409: "Conflict", 410: "Gone", 411: "Length Required", 412: "Precondition Failed", 413: "Content Too Large",
	414: "URI Too Long", 415: "Unsupported Media Type", 416: "Range Not Satisfiable", 417: "Expectation Failed",
	418: "I'm a teapot", 421: "Misdirected Request", 422: "Unprocessable Content", 423: "Locked",
	424: "Failed Dependency", 425: "Too Early", 426: "Upgrade Required", 428: "Precondition Required",
	429: "Too Many Requests", 431: "Request Header Fields Too Large", 451: "Unavailable For Legal Reasons",
	500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable",
	504: "Gateway Timeout", 505: "HTTP Version Not Supported", 506: "Variant Also Negotiates",
	507: "Insufficient Storage", 508: "Loop Detected", 510: "Not Extended", 511: "Network Authentication Required",
}

// Bodiless reports whether a response with this status has no content, whatever its fields say (RFC 9112 6.3).
func Bodiless(status int) bool { return status < 200 || status == 204 || status == 304 }

// Empty reports whether a response with this status must not have content. 205 says so with a length (RFC 9110 15.3.6).
func Empty(status int) bool { return Bodiless(status) || status == 205 }

// Idempotent reports whether a request with this method may be repeated (RFC 9110 9.2.2).
func Idempotent(method string) bool {
	switch method {
	case "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "QUERY":
		return true
	}
	return false
}

// Refusal is why a request is not served: the status to answer it with, and a sentence for the log.
type Refusal struct {
	Status int    // 4xx or 5xx
	Why    string // for the log
	Err    error  // for errors.Is; or nil
}

// Error returns Why.
func (r *Refusal) Error() string { return "httpd: " + r.Why }

// Unwrap returns Err.
func (r *Refusal) Unwrap() error { return r.Err }

// Timeout reports whether the client was too slow: it implements net.Error.
func (r *Refusal) Timeout() bool { return r.Status == 408 }

// Temporary implements net.Error.
func (r *Refusal) Temporary() bool { return r.Timeout() }
