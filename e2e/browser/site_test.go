package browser

import (
	"bytes"
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

const pictures = 30

// site is a directory with a page and all that it needs: a style sheet, a module that imports another, and pictures of
// 7 to 80 KB, so the server reads some of them itself, and has the kernel send others. Picture i is 8 + 3*i pixels
// wide.
func site(t *testing.T) (root string) {
	root = t.TempDir()
	var page strings.Builder
	page.WriteString(`<!doctype html><html lang=en><meta charset=utf-8><title>Pictures – 絵</title>
		<link rel=icon href="data:,"><link rel=stylesheet href=style.css><script type=module src=main.mjs></script><h1>Here</h1>`)
	for i := range pictures {
		name, width := fmt.Sprintf("picture-%d.png", i), 8+3*i
		put(t, root, "pictures/"+name, noise(t, width))
		fmt.Fprintf(&page, "<img alt=%d src=pictures/%s>\n", i, name)
	}
	put(t, root, "index.html", []byte(page.String()))
	put(t, root, "style.css", []byte("h1 { color: rgb(1, 2, 3) }"))
	put(t, root, "main.mjs", []byte(`import { mark } from "./modules/mark.mjs"; mark(document.body)`))
	put(t, root, "modules/mark.mjs", []byte(`export const mark = element => { element.dataset.module = "ran" }`))
	return root
}

// noise is a picture that cannot be compressed.
func noise(t *testing.T, width int) []byte {
	m := image.NewGray(image.Rect(0, 0, width, 800))
	_, _ = rand.NewChaCha8([32]byte{}).Read(m.Pix) // never fails
	var b bytes.Buffer
	fast := png.Encoder{CompressionLevel: png.NoCompression}
	require.NoError(t, fast.Encode(&b, m))
	return b.Bytes()
}

// put writes a file, and the directories above it.
func put(t *testing.T, root, name string, content []byte) (path string) {
	t.Helper()
	path = filepath.Join(root, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, content, 0o644))
	return path
}
