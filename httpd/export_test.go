package httpd

// What a handler has done wrong has no name for programs.
var (
	ErrLength    = errLength
	ErrNoContent = errNoContent
)
