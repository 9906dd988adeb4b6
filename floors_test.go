package daimon_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/daimon-go/daimon"

// floors is the house: each package with what it may import, from the ground up. A package may import
// only packages that stand above it in this list, so there is no way round in a circle or upwards.
//
// Left out are the packages of plain, which let nothing of the world in. Everything else has to be
// named: a clock, a socket, a signal, a random number or a foreign module gets into a package only by a
// line here. Files of all systems count, whatever their build constraints; test files do not.
const floors = `
	# 0: data, mechanisms, and pieces that know nothing of each other
	.
	shutdown          time
	internal/race
	netpoll  internal/race golang.org/x/sys/unix encoding/binary net net/netip os path/filepath runtime syscall time unsafe
	internal/chain
	internal/inbox    runtime
	internal/resource   golang.org/x/sys/unix io/fs os path runtime/debug syscall
	internal/thread   golang.org/x/sys/unix math/rand/v2 os path/filepath runtime time
	internal/wheel
	internal/facts    shutdown net/netip time
	internal/logs     go.uber.org/zap go.uber.org/zap/zapcore os time
	internal/pool     internal/inbox golang.org/x/sys/unix syscall unsafe
	internal/panics   go.uber.org/zap runtime/debug
	internal/merge    shutdown time
	internal/testing/tier   internal/race os os/exec path/filepath testing
	internal/testing/pgserver   internal/testing/tier net os os/exec os/user path/filepath syscall testing time
	internal/cli      flag os time
	internal/testing/tlstest   crypto/aes crypto/cipher crypto/ecdsa crypto/elliptic crypto/hkdf crypto/rand crypto/sha256 crypto/tls
	                  crypto/x509 encoding/binary encoding/hex github.com/stretchr/testify/require math/big testing testing/cryptotest time
	internal/testing/exectest   github.com/stretchr/testify/require go.uber.org/goleak golang.org/x/sys/unix hash/crc32 os
	                  os/exec path/filepath regexp runtime syscall testing time unsafe
	internal/testing/traffic   bufio crypto/tls math/rand/v2 net net/http os time
	internal/testing/price   internal/testing/tier github.com/stretchr/testify/require golang.org/x/sys/unix syscall testing time unsafe
	internal/testing/tier/run   internal/testing/pgserver internal/testing/tier netpoll bufio encoding/json os os/exec path/filepath regexp runtime time
	internal/testing/smuggling
	e2e
	e2e/gateway
	internal/testing/mutant   go/ast go/build go/parser go/scanner go/token os path/filepath regexp

	# 1: the machine. No sockets, no signals, no randomness; of the clock only what config.go
	# wraps, see TestDoors; of os the environment
	act               shutdown internal/facts internal/logs internal/inbox internal/merge internal/panics internal/pool internal/race internal/resource internal/thread internal/wheel
	                  context go.uber.org/zap os reflect runtime time unsafe

	# 2: bytes between a task and goroutines. os and time for the deadlines of those
	internal/lane     act os time

	# 2: lines in the log of all schedulers together
	internal/summary  act go.uber.org/zap time

	# 2: what the connections of a scheduler hold
	internal/budget   act internal/resource internal/summary go.uber.org/zap time

	# 2: demons, futures, monitors. The engine that monitor has by default, and what sim puts below it, know descriptors
	demon             act shutdown internal/facts time
	future            act internal/chain internal/panics context go.uber.org/zap os runtime time
	internal/engine   act netpoll net net/netip os time
	monitor           act shutdown netpoll internal/budget internal/engine internal/facts internal/race
	                  context go.uber.org/zap net net/netip os os/signal syscall time

	# 3: the leaves. net is for its addresses, its errors and the lookup of names; os for its errors and files
	listener          act shutdown monitor netpoll internal/engine internal/budget internal/inbox internal/lane internal/race
	                  context encoding/binary go.uber.org/zap net net/netip os time unsafe

	# what tests put a scheduler on; nothing else imports it
	internal/testing/filtertest   act listener monitor
	internal/testing/servertest   act demon netpoll internal/engine internal/race internal/testing/tier listener monitor
	                  shutdown context github.com/stretchr/testify/require go.uber.org/goleak go.uber.org/zap
	                  go.uber.org/zap/zapcore go.uber.org/zap/zaptest/observer net net/netip os path/filepath runtime testing time

	# 4: what makes tasks
	internal/handover   netpoll shutdown net syscall
	service           act shutdown monitor netpoll listener internal/engine internal/summary internal/handover internal/facts internal/logs internal/panics internal/resource
	                  container/list go.uber.org/zap io/fs net net/netip os os/user syscall time
	internal/testing/streamtest   act internal/testing/servertest listener monitor service encoding/binary github.com/stretchr/testify/require
	                  math/rand/v2 net os path/filepath testing time

	# 4: the same work in other forms. coro reads a clock only to report a body that does not end; time is a
	# type in tasklet, for what is left of a shutdown
	coro              act internal/panics shutdown listener future context go.uber.org/zap net os runtime runtime/debug time
	tasklet           act internal/chain internal/merge internal/panics shutdown go.uber.org/zap hash/maphash reflect runtime time

	# 4: TLS. net and time for net.Conn, os and syscall for the files of a certificate and SIGHUP
	secure            act coro demon listener monitor internal/budget internal/engine internal/pool internal/summary container/list context crypto/ecdsa crypto/elliptic crypto/rand crypto/tls
	                  crypto/x509 crypto/x509/pkix flag go.uber.org/zap math/big net net/netip os runtime syscall time

	# 4: limits of sources. net for their addresses
	admission         act listener monitor internal/facts container/list encoding/binary flag net net/netip time

	# 4: the header of a proxy. net for its addresses
	proxyproto        act listener monitor internal/facts encoding/binary flag hash/crc32 net net/netip time

	# 4: processes. runtime to yield to a thread that holds a lock; os for an error; time for how long
	process           act internal/chain internal/merge internal/panics shutdown future internal/facts internal/inbox context go.uber.org/zap os runtime time

	# 4: topics. context for goroutines that publish and receive; time for how long a history is kept
	topic             act future internal/chain internal/inbox internal/summary shutdown context go.uber.org/zap time

	# 5: HTTP. The internal packages know no connection: bytes and texts go in, positions come out. time is for what is a
	# date and how long; os for a file to send and an error; monitor for a goroutine that sends
	httpd/internal/syntax   unsafe
	httpd/internal/http1    httpd/internal/syntax time
	httpd/internal/http2    httpd/internal/syntax encoding/binary golang.org/x/net/http2/hpack time
	httpd/internal/route    httpd/internal/syntax
	httpd/internal/timeout   act time
	httpd             act shutdown listener monitor httpd/internal/syntax httpd/internal/http1 httpd/internal/http2 internal/budget internal/facts internal/panics internal/race httpd/internal/route httpd/internal/timeout
	                  internal/summary go.uber.org/zap net os time
	httpd/client      act shutdown listener secure httpd/internal/syntax httpd/internal/http1 httpd/internal/http2 httpd/internal/timeout internal/budget crypto/tls net os time
	# net and crypto/tls for the servers of a configuration; syscall for the errors of a process without descriptors
	httpd/gateway     act shutdown httpd httpd/client httpd/internal/syntax internal/facts listener proxyproto secure crypto/tls go.uber.org/zap net syscall time
	# a goroutine writes lines to a file; monitor and syscall for SIGHUP
	httpd/accesslog   act httpd monitor internal/facts flag go.uber.org/zap net os syscall time
	httpd/files       act httpd listener httpd/internal/syntax io/fs os syscall time
	httpd/websocket/internal/frame   encoding/binary
	# compress/flate has no compressor without a state, which would be a megabyte for each message that is being compressed
	httpd/websocket/internal/deflate   httpd/internal/syntax compress/flate github.com/klauspost/compress/flate
	# the handshake of WebSocket has a SHA-1 in base64; a client masks with random keys
	httpd/websocket   act shutdown listener httpd httpd/internal/http1 httpd/internal/syntax httpd/internal/timeout httpd/websocket/internal/frame
	                  httpd/websocket/internal/deflate internal/race
	                  crypto/rand crypto/sha1 encoding/base64 net net/textproto net/url time
	httpd/websocket/coroutine   act coro httpd/websocket
	httpd/nethttp     act demon shutdown httpd httpd/client httpd/internal/syntax internal/handover internal/lane internal/panics internal/summary listener monitor netpoll secure service
	                  bufio context crypto/tls go.uber.org/zap go.uber.org/zap/zapcore log net net/http net/url os reflect syscall time unsafe

	# 5: work in stages. os for the name of a worker, fnv and rand for when it polls; time for how long; json for typed data
	stage/store       context time
	stage/internal/transition   stage/store context time
	stage             stage/store stage/internal/transition act future internal/merge internal/panics shutdown internal/facts internal/logs context encoding/json go.uber.org/zap hash/fnv math/rand/v2 os time
	stage/internal/storm   internal/testing/tier stage stage/store context database/sql github.com/stretchr/testify/require go.uber.org/zap
	                  math/rand/v2 os os/exec os/signal syscall testing time
	stage/memory      stage/store stage/internal/transition container/heap context time
	stage/storetest   stage/store stage/internal/transition context github.com/stretchr/testify/require math/rand/v2 regexp runtime
	                  testing time
	stage/internal/enginetest   act shutdown stage stage/memory stage/store context github.com/stretchr/testify/require runtime testing time

	# 5: a world for all of it. The clock is read for the report of a test, the environment for its seed
	sim               act shutdown internal/budget netpoll internal/engine monitor internal/thread
	                  container/heap context encoding/binary go.uber.org/zap math/rand/v2 net net/netip os regexp runtime runtime/debug syscall testing time
	# messages of clients, for worlds
	sim/framing       bufio encoding/binary
	# a client with its manners, for worlds
	internal/testing/party    act listener monitor shutdown sim math/rand/v2 time os testing

	# 5: what schedulers are doing, on pages with a token. context is for labels of goroutines, by which their stacks are
	# found, and for the end of the pages; runtime for stacks, os for files of /proc, and x/sys/unix for the
	# numbers of system calls. Files are written with what has just happened, also on a signal: monitor, os, syscall
	inspect           act httpd httpd/files internal/handover internal/facts internal/pool internal/logs netpoll internal/thread monitor service shutdown
	                  context crypto/rand crypto/subtle embed encoding/json flag go.uber.org/zap golang.org/x/sys/unix
	                  io/fs net net/netip net/url os path/filepath reflect regexp runtime runtime/debug runtime/pprof syscall text/tabwriter time

	# 5: a program replaces another one. It starts a process with pipes and descriptors, and reads the environment
	upgrade           act monitor internal/handover shutdown
	                  bufio context encoding/json go.uber.org/zap os os/exec os/signal syscall time

	# 6: the main function of a server: the command line, signals, a log and an exit status. x/sys/unix for the clock of sd_notify
	program           act demon internal/cli internal/handover internal/logs internal/thread listener monitor service shutdown upgrade
	                  context flag go.uber.org/zap go.uber.org/zap/zapcore golang.org/x/sys/unix net os os/signal path/filepath syscall time

	# 7: examples. os for arguments and files, and a file of certificates takes crypto/x509
	examples/echo/echo      act listener
	examples/echo           admission examples/echo/echo inspect program proxyproto secure
	examples/echo-coro      admission coro inspect program proxyproto secure
	examples/fetch          act coro future internal/cli listener monitor shutdown tasklet context flag net time
	examples/hello          act inspect listener program
	# it starts a program
	examples/dns/zone       bufio encoding/binary golang.org/x/net/dns/dnsmessage net/netip
	examples/dns            act admission examples/dns/zone inspect internal/cli listener netpoll program service embed flag os time
	examples/watch          act internal/cli listener monitor netpoll shutdown context encoding/binary flag golang.org/x/sys/unix os os/exec
	# its flags name signals
	examples/graceful       act admission demon httpd httpd/websocket inspect listener monitor program proxyproto secure service upgrade
	                  crypto/tls flag go.uber.org/zap net/url os syscall time
	examples/httpd          act admission httpd httpd/accesslog httpd/files inspect listener program proxyproto secure
	                  crypto/tls flag io/fs
	examples/mqtt           act admission httpd httpd/websocket inspect listener program proxyproto secure topic
	                  crypto/tls encoding/binary flag time
	examples/proxy/proxy    act listener proxyproto time
	examples/proxy          admission examples/proxy/proxy inspect internal/cli listener program proxyproto secure
	                  crypto/tls crypto/x509 flag net os
	examples/tutorial       act coro httpd inspect listener program secure service crypto/tls flag net/http os time
	examples/websocket-echo/echo   act httpd httpd/websocket
	examples/websocket-echo   admission examples/websocket-echo/echo httpd httpd/websocket inspect program proxyproto secure
	                  crypto/tls flag
`

// plain is what any package may import.
var plain = strings.Fields(`
	bytes cmp errors fmt io iter maps math math/bits slices sort strconv strings sync sync/atomic
	unicode unicode/utf8
`)

// floor is a line of floors.
type floor struct {
	name string
	may  []string
}

// house reads floors. A line that is indented further goes on with the one before.
func house() (all []floor) {
	for line := range strings.Lines(floors) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case strings.HasPrefix(line, "\t "):
			last := &all[len(all)-1]
			last.may = append(last.may, words...)
		default:
			all = append(all, floor{words[0], words[1:]})
		}
	}
	return all
}

func TestFloors(t *testing.T) {
	found := imports(t)
	listed := map[string]bool{}
	for _, f := range house() {
		require.False(t, listed[f.name], "%s is listed twice", f.name)
		for _, name := range f.may {
			if found[name] != nil {
				require.True(t, listed[name], "%s may not import %s, which does not stand above it in the list", f.name, name)
			}
		}
		listed[f.name] = true
		require.Contains(t, found, f.name, "the package is listed and gone")
		for _, name := range found[f.name] {
			require.True(t, slices.Contains(f.may, name) || slices.Contains(plain, name),
				"%s must not import %s; if it should, that is a change of the architecture: say why in the list", f.name, name)
		}
		for _, name := range f.may {
			require.True(t, slices.Contains(found[f.name], name) && !slices.Contains(plain, name),
				"%s is in the list of %s for nothing", name, f.name)
		}
	}
	for name := range found {
		require.True(t, listed[name], "the package %s has no place in the list", name)
	}
}

// imports returns what each package of the module imports, packages of the module by their directories.
func imports(t *testing.T) map[string][]string {
	found := map[string][]string{}
	for _, path := range goFiles(t) {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		require.NoError(t, err)
		dir := filepath.ToSlash(filepath.Dir(path))
		all := append([]string{}, found[dir]...) // not nil: there is such a package
		for _, spec := range file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			name = strings.TrimPrefix(name, module+"/")
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
		found[dir] = all
	}
	return found
}

// goFiles returns the files of the module's packages, without those of tests and of other modules.
func goFiles(t *testing.T) (files []string) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != ".":
			_, other := os.Stat(filepath.Join(path, "go.mod"))
			if other == nil || strings.ContainsAny(d.Name()[:1], "._") || d.Name() == "testdata" {
				return fs.SkipDir
			}
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			files = append(files, path)
		}
		return nil
	})
	require.NoError(t, err)
	return files
}

// doors are the only places, outside of what is doorless, where time comes in and where goroutines begin. All
// else asks its scheduler, so one seed gives one history. A further door is a further way for two runs
// to differ, and for a simulation to miss something.
var doors = map[string][]string{
	"act/config.go":                          {"time.Now", "time.Since"},                                       // the system's Clock
	"act/idle.go":                            {"time.NewTimer"},                                                // the Idler of a scheduler without descriptors
	"act/group.go":                           {"go"},                                                           // the threads, and the goroutines that wait for them
	"internal/pool/pool.go":                  {"go"},                                                           // the default Executor, and the slots of handshakes
	"coro/routine.go":                        {"time.AfterFunc"},                                               // a stopped body that does not end is reported
	"internal/testing/servertest/stepped.go": {"go", "time.After", "time.Now", "time.Sleep"},                   // a part of tests
	"httpd/accesslog/log.go":                 {"time.After"},                                                   // how long the end waits for the last lines
	"httpd/accesslog/writer.go":              {"go", "time.Now"},                                               // a file may block; how often losses are reported
	"httpd/nethttp/server.go":                {"go"},                                                           // Serve returns before its schedulers have ended
	"internal/lane/lane.go":                  {"time.Now", "time.Until", "time.AfterFunc"},                     // deadlines of goroutines that block
	"inspect/watchdog.go":                    {"go", "time.NewTicker", "time.Now"},                             // it sees what holds up a scheduler, whose clock stands still then
	"inspect/profile.go":                     {"time.NewTimer"},                                                // how long a profile is taken, while the server goes on
	"inspect/recorder.go":                    {"go", "time.Now", "time.After", "time.AfterFunc"},               // a disk may block; how often files are written
	"inspect/server.go":                      {"go"},                                                           // pages that outlive a stuck scheduler
	"monitor/signals.go":                     {"go"},                                                           // os/signal hands over on a channel
	"internal/thread/leastused.go":           {"time.Sleep"},                                                   // the load of CPUs is a difference; at set-up only
	"netpoll/listen_unix.go":                 {"time.Sleep"},                                                   // another program binds the same path; at set-up only
	"netpoll/runtime.go":                     {"time.AfterFunc"},                                               // stopped at once: it opens the runtime's poller
	"secure/handshakes.go":                   {"go", "time.AfterFunc"},                                         // a step that takes long goes on without its slot
	"secure/selfsigned.go":                   {"time.Now"},                                                     // when a certificate is valid
	"stage/goroutines.go":                    {"go", "time.Now", "time.Since", "time.After", "time.NewTicker"}, // an engine without a Group
	"upgrade/state.go":                       {"go"},                                                           // a service may not return in time
	"upgrade/child.go":                       {"go"},                                                           // a child is waited for, so that it is no zombie
	"stage/memory/store.go":                  {"time.Now"},                                                     // unless it is given another clock
	"stage/run.go":                           {"time.NewTimer"},                                                // likewise
	"sim/test.go":                            {"time.Now", "time.Since"},                                       // how long it took, to be printed
}

// doorless are examples, and suites that tests are made of, beside which no other time comes in.
var doorless = []string{"examples/", "internal/testing/exectest/", "internal/testing/pgserver/", "internal/testing/price/", "internal/testing/streamtest/", "internal/testing/tier/run/", "internal/testing/traffic/", "stage/internal/enginetest/", "stage/internal/storm/", "stage/storetest/"}

var clocks = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

func TestDoors(t *testing.T) {
	for _, path := range goFiles(t) {
		path = filepath.ToSlash(path)
		if !slices.ContainsFunc(doorless, func(dir string) bool { return strings.HasPrefix(path, dir) }) {
			require.ElementsMatch(t, doors[path], opened(t, path), path)
		}
	}
	for path := range doors {
		require.FileExists(t, path)
	}
}

// opened returns what a file opens, each once.
func opened(t *testing.T, path string) (all []string) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		name := ""
		switch n := n.(type) {
		case *ast.GoStmt:
			name = "go"
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clocks, n.Sel.Name) {
				name = "time." + n.Sel.Name
			}
		}
		if name != "" && !slices.Contains(all, name) {
			all = append(all, name)
		}
		return true
	})
	return all
}
