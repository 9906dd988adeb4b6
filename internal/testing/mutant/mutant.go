// Package mutant reads the catalogues of planted mistakes. A mutant is a small change that breaks one thing, and
// names the test that has to notice it. Only tests import this package.
//
// A file NAME.mutant holds one:
//
//	# A place that becomes free wakes only one of the waiting listeners.
//	# scenario: TestWorldSessions, 200 seeds
//	@@ monitor Account.leave
//	-	for _, b := range bells {
//	-		b.Wake()
//	+	if len(bells) > 0 {
//	+		bells[0].Wake()
//	 	}
//
// The comment begins with what is broken. A line "# key: value" is for the test that uses the catalogue. Each line
// that begins with @@ opens an edit: the folder of a package, from the root of the module, and the name of a
// declaration in it: a function, Type.method, a type, a variable or a constant. The lines below are as in a diff: -
// is taken away, + is put in, and a blank stands before what stays.
//
// The tokens of the - and blank lines have to occur exactly once in the declaration. Comments and white space do not
// count, nor does the file that the declaration is in. Keep as few lines as make the place unique.
package mutant

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Mutant is one planted mistake.
type Mutant struct {
	Name  string            // of its file, without the folder and .mutant
	What  string            // what is broken
	Head  map[string]string // the lines "# key: value"
	edits []edit
}

type edit struct {
	pkg, decl string
	before    string // what stays and what is taken away
	after     string // what stays and what is put in
}

// ReadAll returns the mutants of a folder, in the order of their names.
func ReadAll(dir string) (all []*Mutant, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.mutant"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s has no mutants", dir)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		m, err := parse(strings.TrimSuffix(filepath.Base(path), ".mutant"), string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, m)
	}
	return all, nil
}

var headLine = regexp.MustCompile(`^# (\w+): (.+)\n?$`)

func parse(name, text string) (*Mutant, error) {
	m := &Mutant{Name: name, Head: map[string]string{}}
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 0 && words[0] == "@@" {
			if len(words) != 3 {
				return nil, fmt.Errorf("%q is not @@, a package and a declaration", line)
			}
			m.edits = append(m.edits, edit{pkg: words[1], decl: words[2]})
			continue
		}
		if len(m.edits) == 0 {
			if h := headLine.FindStringSubmatch(line); h != nil {
				m.Head[h[1]] = h[2]
			} else if what, ok := strings.CutPrefix(line, "# "); ok {
				m.What = strings.TrimSpace(m.What + " " + strings.TrimSpace(what))
			} else {
				return nil, fmt.Errorf("%q is neither a comment nor the beginning of an edit", line)
			}
			continue
		}
		e := &m.edits[len(m.edits)-1]
		switch line[0] {
		case '-':
			e.before += line[1:]
		case '+':
			e.after += line[1:]
		case ' ', '\t':
			e.before += line[1:]
			e.after += line[1:]
		case '\n':
		default:
			return nil, fmt.Errorf("%q begins with neither -, + nor a blank", line)
		}
	}
	if m.What == "" || len(m.edits) == 0 {
		return nil, fmt.Errorf("it does not say what is broken and where")
	}
	return m, nil
}

// Packages returns the folders of the packages that m changes, from the root of the module.
func (m *Mutant) Packages() (all []string) {
	for _, e := range m.edits {
		if !slices.Contains(all, e.pkg) {
			all = append(all, e.pkg)
		}
	}
	return all
}

// Apply returns the changed text of each file that m changes. The keys are paths below root, which is that of the
// module.
func (m *Mutant) Apply(root string) (files map[string]string, err error) {
	files = map[string]string{}
	for _, e := range m.edits {
		if err := e.apply(root, files); err != nil {
			return nil, fmt.Errorf("mutant %s no longer applies: %w. Break the same thing in today's code and renew %[1]s.mutant", m.Name, err)
		}
	}
	return files, nil
}

func (e *edit) apply(root string, files map[string]string) error {
	path, text, begin, end, err := e.find(root, files)
	if err != nil {
		return err
	}
	old := tokens(e.before)
	if len(old) == 0 {
		return fmt.Errorf("the edit of %s has no line that it takes away or that stays", e.decl)
	}
	in := tokens(text[begin:end])
	at, times := 0, 0
	for i := range len(in) - len(old) + 1 {
		if slices.EqualFunc(in[i:i+len(old)], old, func(a, b tok) bool { return a.text == b.text }) {
			at = i
			times++
		}
	}
	if times != 1 {
		return fmt.Errorf("its lines occur %d times in %s of %s", times, e.decl, path)
	}
	from, to := begin+in[at].offset, begin+in[at+len(old)-1].end()
	files[path] = text[:from] + strings.TrimSpace(e.after) + text[to:]
	return nil
}

// find returns the file that has the declaration, its text with the edits so far, and where in it the declaration is.
func (e *edit) find(root string, files map[string]string) (path, text string, begin, end int, err error) {
	dir := filepath.Join(root, filepath.FromSlash(e.pkg))
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return
	}
	for _, path = range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		if ok, err := build.Default.MatchFile(dir, filepath.Base(path)); err != nil || !ok {
			continue
		}
		var ok bool
		if text, ok = files[path]; !ok {
			b, err := os.ReadFile(path)
			if err != nil {
				return "", "", 0, 0, err
			}
			text = string(b)
		}
		if begin, end, err = declaration(path, text, e.decl); begin < end || err != nil {
			return
		}
	}
	return "", "", 0, 0, fmt.Errorf("package %s declares no %s", e.pkg, e.decl)
}

// declaration returns where a name is declared in a file: from begin to before end. Both are 0 if it is not.
func declaration(path, text, name string) (begin, end int, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, parser.SkipObjectResolution)
	if err != nil {
		return 0, 0, err
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if funcName(d) == name {
				return set.Position(d.Pos()).Offset, set.Position(d.End()).Offset, nil
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if specHas(s, name) {
					if !d.Lparen.IsValid() {
						return set.Position(d.Pos()).Offset, set.Position(d.End()).Offset, nil
					}
					return set.Position(s.Pos()).Offset, set.Position(s.End()).Offset, nil
				}
			}
		}
	}
	return 0, 0, nil
}

// funcName is the name of a function, with that of its receiver's type before it.
func funcName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	x := d.Recv.List[0].Type
	for {
		switch y := x.(type) {
		case *ast.StarExpr:
			x = y.X
		case *ast.IndexExpr:
			x = y.X
		case *ast.IndexListExpr:
			x = y.X
		default:
			return x.(*ast.Ident).Name + "." + d.Name.Name
		}
	}
}

func specHas(s ast.Spec, name string) bool {
	switch s := s.(type) {
	case *ast.TypeSpec:
		return s.Name.Name == name
	case *ast.ValueSpec:
		return slices.ContainsFunc(s.Names, func(n *ast.Ident) bool { return n.Name == name })
	}
	return false
}

// tok is a token of Go.
type tok struct {
	text   string
	offset int
}

func (t tok) end() int { return t.offset + len(t.text) }

// tokens returns the tokens of a piece of Go, without comments and without the semicolons that nobody writes.
func tokens(text string) (all []tok) {
	set := token.NewFileSet()
	file := set.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), nil, 0)
	for {
		pos, kind, literal := s.Scan()
		switch {
		case kind == token.EOF:
			return all
		case kind == token.SEMICOLON && literal == "\n":
		case literal != "":
			all = append(all, tok{literal, file.Offset(pos)})
		default:
			all = append(all, tok{kind.String(), file.Offset(pos)})
		}
	}
}
