package topic

// Member is somebody who is present in a topic.
type Member struct {
	ID   string
	Info []byte // for others, such as a name; must not be changed
}

// present is a Member with the number of its subscriptions.
type present struct {
	Member
	count int
}

// join makes the member of sub present, if the rule of a topic says so. TODO
func (b *Broker) join(sub *Subscription, topic string) {}

// leave ends that. TODO
func (b *Broker) leave(sub *Subscription, topic string) {}
