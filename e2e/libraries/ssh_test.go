package libraries

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/daimon-go/daimon/internal/testing/tier"
)

// shell is a server of SSH whose commands are "upper", which answers its input in capitals, and "numbers", which prints
// three megabytes.
type shell struct{ config ssh.ServerConfig }

func newShell(t *testing.T) *shell {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(key)
	require.NoError(t, err)
	s := &shell{ssh.ServerConfig{NoClientAuth: true}}
	s.config.AddHostKey(signer)
	return s
}

// serve is the function of a Bridge. It uses goroutines as the documentation of package ssh does.
func (s *shell) serve(c net.Conn) error {
	conn, channels, requests, err := ssh.NewServerConn(c, &s.config)
	if err != nil {
		return err
	}
	defer conn.Close()
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		if offered.ChannelType() != "session" {
			_ = offered.Reject(ssh.UnknownChannelType, "only sessions")
			continue
		}
		channel, requests, err := offered.Accept()
		if err != nil {
			return err
		}
		go session(channel, requests)
	}
	return nil
}

func session(c ssh.Channel, requests <-chan *ssh.Request) {
	defer c.Close()
	for r := range requests {
		var command struct{ Line string }
		known := r.Type == "exec" && ssh.Unmarshal(r.Payload, &command) == nil
		_ = r.Reply(known || r.Type == "env", nil)
		if !known {
			continue
		}
		status := struct{ Status uint32 }{}
		switch command.Line {
		case "upper":
			in, _ := io.ReadAll(c)
			_, _ = c.Write(bytes.ToUpper(in))
		case "numbers":
			_, _ = c.Write(numbers)
		default:
			status.Status = 127
		}
		_, _ = c.SendRequest("exit-status", false, ssh.Marshal(&status))
		return
	}
}

// numbers are more than a window of package ssh, 2 MiB. With the race detector each megabyte takes 60 ms of a CPU.
var numbers = func() []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < 3<<20; i++ {
		fmt.Fprintln(&b, i)
	}
	return b.Bytes()
}()

// The program ssh of OpenSSH.
func TestXCryptoSSHServesOpenSSH(t *testing.T) {
	tier.Need(t, tier.Full, "runs ssh")
	path := tier.Tool(t, "ssh")
	b := start(t, newShell(t).serve)
	_, port, err := net.SplitHostPort(b.address())
	require.NoError(t, err)
	run := func(command string, in io.Reader) ([]byte, error) {
		cmd := exec.Command(path, "-F", "none", "-p", port, "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
			"-o", "BatchMode=yes", "-o", "IdentityFile=none", "-o", "LogLevel=ERROR", "somebody@127.0.0.1", command)
		cmd.Stdin, cmd.WaitDelay = in, time.Second
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, said.String())
		}
		return out, err
	}
	out, err := run("upper", strings.NewReader("hello"))
	require.NoError(t, err)
	require.Equal(t, "HELLO", string(out))
	out, err = run("numbers", nil)
	require.NoError(t, err)
	require.True(t, bytes.Equal(numbers, out))
	out, err = run("upper", bytes.NewReader(numbers))
	require.NoError(t, err)
	require.True(t, bytes.Equal(numbers, out))
	_, err = run("no-such-command", nil)
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 127, exit.ExitCode())
	b.drain()
}
