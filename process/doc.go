// Package process has processes with mailboxes, on the schedulers of a Group.
package process
