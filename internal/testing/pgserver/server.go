//go:build unix

package pgserver

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Config configures a Server.
type Config struct {
	// Settings are parameters of postgresql.conf, such as fsync or max_connections.
	Settings map[string]string
}

// ForTests are the settings of a server for tests, which survives no loss of power.
var ForTests = Config{Settings: map[string]string{"fsync": "off", "max_connections": "300"}}

// variable is the environment variable that names a server for all packages of a run: its folder, and its port.
const variable = "DAIMON_POSTGRES"

// Env returns the environment variable with which Shared finds the server in another process.
func (s *Server) Env() string { return fmt.Sprintf("%s=%s:%d", variable, s.dir, s.port) }

// Shared returns the server that the environment variable DAIMON_POSTGRES names, which another process closes. Without the variable
// it starts one. Each process makes databases of its own, with names of its own, and neither stops the server nor kills it.
func Shared() (*Server, error) {
	name, ok := os.LookupEnv(variable)
	if !ok {
		return Start(ForTests)
	}
	at := strings.LastIndexByte(name, ':')
	port, err := strconv.Atoi(name[at+1:])
	if at < 0 || err != nil {
		return nil, fmt.Errorf("%s is %q, and not a folder and a port", variable, name)
	}
	p := &program{dir: name[:at], port: port}
	return &Server{p}, p.chooseUser()
}

// Server is a PostgreSQL server. Its superuser is postgres, whose password is "secret" over TCP; over the Unix socket
// none is asked for.
type Server struct{ *program }

// Start makes a new server and starts it. The error says so if PostgreSQL is not installed.
func Start(cfg Config) (*Server, error) {
	p, err := newProgram()
	if err != nil {
		return nil, err
	}
	s := &Server{p}
	if err = s.initialize(cfg); err == nil {
		err = s.Start()
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Server) initialize(cfg Config) error {
	if err := s.write("password", "secret\n"); err != nil {
		return err
	}
	if _, err := s.run("initdb", "-D", s.data(), "-U", "postgres", "--pwfile=password", "--no-sync", "-E", "UTF8",
		"--locale=C", "--auth-local=trust", "--auth-host=scram-sha-256"); err != nil {
		return err
	}
	var settings strings.Builder
	fmt.Fprintf(&settings, "listen_addresses = '127.0.0.1'\nport = %d\nunix_socket_directories = '%s'\n", s.port, s.dir)
	for name, value := range cfg.Settings {
		fmt.Fprintf(&settings, "%s = '%s'\n", name, value)
	}
	return s.write("data/postgresql.auto.conf", settings.String())
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// Start starts the server again after Stop or Kill.
func (s *Server) Start() error { return s.start(s.ready, "postgres", "-D", s.data()) }

// ready looks where pg_ctl does.
func (s *Server) ready() bool {
	text, _ := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	lines := bytes.Split(text, []byte("\n"))
	if len(lines) < 8 || string(bytes.TrimSpace(lines[0])) != fmt.Sprint(s.cmd.Process.Pid) {
		return false
	}
	status := string(bytes.TrimSpace(lines[7]))
	return status == "ready" || status == "standby"
}

// Stop shuts the server down gracefully: it rolls back running transactions, and says goodbye to all connections.
func (s *Server) Stop() error { return s.stop(syscall.SIGINT) }

// Restart is Stop and Start.
func (s *Server) Restart() error { return errors.Join(s.Stop(), s.Start()) }

// Standby restarts the server as a hot standby without a primary: it can only be read.
func (s *Server) Standby() error {
	return errors.Join(s.Stop(), s.write("data/standby.signal", ""), s.Start())
}

// Terminate ends all connections of clients.
func (s *Server) Terminate() error {
	_, err := s.Do("postgres", `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`)
	return err
}

// Do executes SQL with psql, over the Unix socket, and returns what it prints: a row in a line, | between columns.
func (s *Server) Do(database, sql string) (string, error) {
	return s.run("psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-h", s.dir, "-p", fmt.Sprint(s.port), "-U", "postgres", "-d", database, "-c", sql)
}

// Create makes an empty database, and returns its URL.
func (s *Server) Create(database string) (string, error) {
	_, err := s.Do("postgres", `CREATE DATABASE "`+database+`"`)
	return s.URL(database), err
}

// URL returns the URL of a database over TCP, with the password.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://postgres:secret@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}

// Socket returns the connection string of a database over the Unix socket.
func (s *Server) Socket(database string) string {
	return fmt.Sprintf("host=%s port=%d user=postgres dbname=%s", s.dir, s.port, database)
}
