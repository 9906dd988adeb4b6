package browser

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"image"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const pictures = 60

// site is a directory with a page and all that it needs: a style sheet, a module that imports another, and pictures of
// 400 bytes to 150 KB, so of those that the server reads and of those that it has the system send. Picture i is
// 8 + 3*i pixels wide.
func site(t *testing.T) (root string) {
	root = t.TempDir()
	var page strings.Builder
	page.WriteString(`<!doctype html><html lang=en><meta charset=utf-8><title>Sixty pictures – 絵</title>
		<link rel=icon href="data:,"><link rel=stylesheet href=style.css><script type=module src=main.mjs></script><h1>Here</h1>`)
	for i := range pictures {
		name, width := fmt.Sprintf("picture-%d.png", i), 8+3*i
		if i%3 == 0 {
			name = fmt.Sprintf("picture-%d.svg", i)
			put(t, root, "pictures/"+name, drawing(width))
		} else {
			put(t, root, "pictures/"+name, noise(t, width))
		}
		fmt.Fprintf(&page, "<img alt=%d src=pictures/%s>\n", i, name)
	}
	put(t, root, "index.html", []byte(page.String()))
	put(t, root, "style.css", []byte("h1 { color: rgb(1, 2, 3) }"))
	put(t, root, "main.mjs", []byte(`import { mark } from "./modules/mark.mjs"; mark(document.body)`))
	put(t, root, "modules/mark.mjs", []byte(`export const mark = element => { element.dataset.module = "ran" }`))
	return root
}

func drawing(width int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="9">`, width)
	for i := range width * 10 {
		fmt.Fprintf(&b, `<circle cx="%d" cy="4" r="%d" fill="none" stroke="green"/>`, i%width, i%7)
	}
	b.WriteString("</svg>")
	return b.Bytes()
}

// noise is a picture that cannot be compressed.
func noise(t *testing.T, width int) []byte {
	m := image.NewGray(image.Rect(0, 0, width, 800))
	fill(m.Pix)
	var b bytes.Buffer
	fast := png.Encoder{CompressionLevel: png.NoCompression}
	require.NoError(t, fast.Encode(&b, m))
	return b.Bytes()
}

// fill has any two pieces differ, and is always the same.
func fill(p []byte) {
	_, _ = rand.NewChaCha8([32]byte{}).Read(p)
}

// content is n bytes, always the same.
func content(n int) []byte {
	p := make([]byte, n)
	fill(p)
	return p
}

// hash is that of the scripts.
func hash(p []byte) string {
	sum := sha256.Sum256(p)
	return hex.EncodeToString(sum[:])
}

// put writes a file, and the directories above it.
func put(t *testing.T, root, name string, content []byte) (path string) {
	t.Helper()
	path = filepath.Join(root, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, content, 0o644))
	return path
}
