// Package topic passes messages from publishers to subscriptions, over all schedulers of a Group.
package topic
