package inspect

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEachCountHasAMeaning reads the sources of the module: each name that a function like that of facts.Counter adds is in help.
func TestEachCountHasAMeaning(t *testing.T) {
	counted := 0
	require.NoError(t, fs.WalkDir(os.DirFS(".."), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "sim/") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", path), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Name.Name != "Counts" || f.Type.Results != nil { // stores of package stage have another one
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
					name, err := strconv.Unquote(text.Value)
					require.NoError(t, err)
					name = strings.ReplaceAll(name, "%d", "1")
					require.NotEmpty(t, help[name], "%s: %s", path, name)
					counted++
				}
				return true
			})
		}
		return nil
	}))
	require.Greater(t, counted, 40)
}
