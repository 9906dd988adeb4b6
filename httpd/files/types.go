package files

import "strings"

// unknown is the type of files without a known one (RFC 9110 8.3). Browsers do not guess from it.
const unknown = "application/octet-stream"

// typeOf returns the Content-Type of a file: from of by its extension, or from the table, or of[""], or unknown. The
// extension is what follows the last dot of the last segment, without regard to case.
// Package mime is not used: it reads files of the system, on the thread of its caller, and differs between systems.
func typeOf(name string, of map[string]string) string {
	ext := ""
	if i := strings.LastIndexAny(name, "./"); i >= 0 && name[i] == '.' {
		ext = strings.ToLower(name[i:])
	}
	for _, t := range []string{of[ext], types[ext], of[""]} {
		if t != "" {
			return t
		}
	}
	return unknown
}

// types are the types that browsers ask for. Text is UTF-8. JSON has no parameter for that, since it always is
// (RFC 8259 8.1); SVG and other XML declare it themselves.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".htm": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
	".js": "text/javascript; charset=utf-8", ".mjs": "text/javascript; charset=utf-8",
	".txt": "text/plain; charset=utf-8", ".md": "text/markdown; charset=utf-8",
	".csv": "text/csv; charset=utf-8", ".vtt": "text/vtt; charset=utf-8",
	".ics": "text/calendar; charset=utf-8", ".xml": "text/xml",
	".xhtml": "application/xhtml+xml", ".json": "application/json", ".map": "application/json",
	".jsonld": "application/ld+json", ".webmanifest": "application/manifest+json",
	".atom": "application/atom+xml", ".rss": "application/rss+xml", ".wasm": "application/wasm",
	".pdf": "application/pdf", ".rtf": "application/rtf", ".epub": "application/epub+zip",
	".zip": "application/zip", ".gz": "application/gzip", ".tgz": "application/gzip",
	".bz2": "application/x-bzip2", ".xz": "application/x-xz", ".zst": "application/zstd",
	".tar": "application/x-tar", ".7z": "application/x-7z-compressed",
	".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg",
	".gif": "image/gif", ".webp": "image/webp", ".avif": "image/avif", ".apng": "image/apng",
	".bmp": "image/bmp", ".tif": "image/tiff", ".tiff": "image/tiff", ".ico": "image/vnd.microsoft.icon",
	".woff": "font/woff", ".woff2": "font/woff2", ".ttf": "font/ttf", ".otf": "font/otf",
	".mp3": "audio/mpeg", ".m4a": "audio/mp4", ".aac": "audio/aac", ".ogg": "audio/ogg", ".oga": "audio/ogg",
	".opus": "audio/ogg", ".flac": "audio/flac", ".wav": "audio/wav", ".weba": "audio/webm",
	".mp4": "video/mp4", ".m4v": "video/mp4", ".webm": "video/webm", ".ogv": "video/ogg", ".mpeg": "video/mpeg",
	".mov": "video/quicktime", ".m3u8": "application/vnd.apple.mpegurl", ".ts": "video/mp2t",
}
