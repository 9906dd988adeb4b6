package daimon_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// exported has what packages export, as "act.Config.Inbox", and without the package as "Config.Inbox".
type exported map[string]bool

func (all exported) add(name string, parts ...string) {
	path := strings.Join(parts, ".")
	all["package "+name], all[name+"."+path], all[path] = true, true, true
}

// inside are folders whose packages no document explains by name.
var inside = regexp.MustCompile(`(^|/)(internal|testdata|examples|bench|e2e|tools)/|_test\.go$`)

func packages(t *testing.T) exported {
	all := exported{}
	for _, path := range goFiles(t) {
		if inside.MatchString(path) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		name := file.Name.Name
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					all.add(name, d.Name.Name)
				} else {
					all.add(name, base(d.Recv.List[0].Type), d.Name.Name)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					all.spec(name, s)
				}
			}
		}
	}
	return all
}

func (all exported) spec(name string, s ast.Spec) {
	switch s := s.(type) {
	case *ast.ValueSpec:
		for _, n := range s.Names {
			all.add(name, n.Name)
		}
	case *ast.TypeSpec:
		all.add(name, s.Name.Name)
		var members *ast.FieldList
		switch x := s.Type.(type) {
		case *ast.StructType:
			members = x.Fields
		case *ast.InterfaceType:
			members = x.Methods
		default:
			return
		}
		for _, m := range members.List {
			for _, n := range m.Names {
				all.add(name, s.Name.Name, n.Name)
			}
			if len(m.Names) == 0 {
				all.add(name, s.Name.Name, base(m.Type))
			}
		}
	}
}

// base returns the name of a type, without a pointer, a package and type arguments.
func base(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return base(x.X)
	case *ast.IndexExpr:
		return base(x.X)
	case *ast.IndexListExpr:
		return base(x.X)
	case *ast.SelectorExpr:
		return x.Sel.Name
	case *ast.Ident:
		return x.Name
	}
	return ""
}

var (
	codeSpan = regexp.MustCompile("`[^`\n]+`")
	goName   = regexp.MustCompile(`\b([a-z]+)\.([A-Z]\w*)(\.[A-Z]\w*)?`)
	member   = regexp.MustCompile("`([A-Z]\\w*)\\.([A-Z]\\w*)")
)

// What is renamed or given up is renamed or given up in the documents, too.
func TestDocumentsNameWhatIsThere(t *testing.T) {
	all := packages(t)
	for _, document := range documents(t) {
		if document == "CHANGELOG.md" {
			continue // it names what is gone
		}
		for _, span := range codeSpan.FindAllString(fenced.ReplaceAllString(text(t, document), ""), -1) {
			for _, n := range goName.FindAllStringSubmatch(span, -1) {
				if all["package "+n[1]] && !all[n[1]+"."+n[2]+n[3]] {
					t.Errorf("%s: %s", document, n[0])
				}
			}
			n := member.FindStringSubmatch(span)
			if n != nil && all[n[1]] && !all[n[1]+"."+n[2]] {
				t.Errorf("%s: %s", document, n[0])
			}
		}
	}
}
