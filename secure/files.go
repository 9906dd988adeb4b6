package secure

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/monitor"
)

// Files is a certificate and its key in files, which can be replaced while the server runs:
//
//	files := &secure.Files{Cert: "cert.pem", Key: "key.pem"}
//	config := &tls.Config{GetCertificate: files.GetCertificate}
//	server.Run(files, server.Listen(server.Addr, site.Serve, secure.Server(config, nil)))
//
// Setup reads them at the start, and on SIGHUP. New connections get the certificate that was read last; open
// connections go on, and their sessions can be resumed, since the tls.Config stays as it is. For connections that are
// dialled, GetClientCertificate takes the place of GetCertificate.
type Files struct {
	Cert string // the path of a file with the certificate in PEM, followed by the ones that lead to the root
	Key  string // the path of a file with the private key of the certificate in PEM, not encrypted

	reading sync.Mutex // one Reload at a time, so that an earlier one cannot take the place of a later one
	loaded  atomic.Pointer[tls.Certificate]
}

// Setup reads the files, and reads them again on each SIGHUP, which is logged in one line and no longer ends the program.
// It is a set-up function for [act.Run]. The first scheduler reads; on others Setup does nothing. It fails if a file
// cannot be read or the key does not match. An expired certificate is not an error, but a warning in the log.
func (f *Files) Setup(s *act.Scheduler) error {
	if s.Index() > 0 {
		return nil
	}
	if err := f.Reload(); err != nil {
		return err
	}
	if flaw := f.flaw(s.Clock().Wall()); flaw != "" {
		s.Logger().Warn("the certificate in " + f.Cert + flaw)
	}
	return monitor.OnSignal(hangup{f, s}, syscall.SIGHUP)(s)
}

// Reload reads the files now. After an error the certificate that was read before stays in force. It blocks. Any goroutine.
func (f *Files) Reload() error {
	f.reading.Lock()
	defer f.reading.Unlock()
	cert, err := os.ReadFile(f.Cert)
	if err != nil {
		return fmt.Errorf("cannot read the certificate: %w", err)
	}
	key, err := os.ReadFile(f.Key)
	if err != nil {
		return fmt.Errorf("cannot read the key of the certificate: %w", err)
	}
	both, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("cannot use the certificate in %s with the key in %s: %w", f.Cert, f.Key, err)
	}
	f.loaded.Store(&both)
	return nil
}

// GetCertificate returns the certificate that was read last, for the field of that name of a server's tls.Config. It fails if
// none was read. Any goroutine.
func (f *Files) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.get() }

// GetClientCertificate returns the certificate that was read last, for the field of that name of a client's tls.Config. The
// certificate is sent to every server that asks for one, whatever authorities the server names. It fails if none was read. Any
// goroutine.
func (f *Files) GetClientCertificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return f.get()
}

func (f *Files) get() (*tls.Certificate, error) {
	if c := f.loaded.Load(); c != nil {
		return c, nil
	}
	return nil, errors.New("secure: neither Setup nor Reload has read the certificate")
}

// flaw returns what clients will say about the time of the certificate: "" if nothing.
func (f *Files) flaw(now time.Time) string {
	switch leaf := f.loaded.Load().Leaf; {
	case now.After(leaf.NotAfter):
		return " expired on " + leaf.NotAfter.Format(time.DateTime+" MST")
	case now.Before(leaf.NotBefore):
		return " is not valid before " + leaf.NotBefore.Format(time.DateTime+" MST")
	}
	return ""
}

// hangup is what SIGHUP does.
type hangup struct {
	*Files
	s *act.Scheduler
}

// Signal is called on a goroutine of its own.
func (h hangup) Signal(os.Signal) {
	log := h.s.Logger()
	if err := h.Reload(); err != nil {
		log.Error("the certificate stays as it was", zap.Error(err))
	} else if flaw := h.flaw(h.s.Clock().Wall()); flaw != "" {
		log.Warn("the new certificate in " + h.Cert + flaw)
	} else {
		log.Info("read the certificate in " + h.Cert + " again")
	}
}
