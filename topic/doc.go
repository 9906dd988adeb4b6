// Package topic implements publish and subscribe over all schedulers of a Group: a message that is published anywhere reaches the
// subscriptions to its topic, wherever their owners are. Tasks, processes, coroutines and goroutines publish and subscribe.
//
//	b := topic.New(topic.Config{})                  // b.Setup is a set-up function of the Group
//
//	sub := b.Subscribe(t, topic.Options{})          // in a turn of the task t, with which it ends
//	err := sub.Add("rooms/7/+")
//
//	err = b.Publish(topic.Publication{Topic: "rooms/7/lines", Data: line})
//
//	m, err := sub.Take()                            // in each turn
//	if err != nil {
//		return listener.Next(t, err)            // the next message wakes the task
//	}
//
// A [Broker] has the topics. All subscriptions share a [Message]; a [Framing] makes once what a protocol sends for it. To publish
// costs an entry for each filter that matches and each scheduler that has subscriptions to it, however many they are.
//
// # Names and filters
//
// The name of a topic has levels, which are separated by slashes. In a filter + stands for one level, and # at the end for any
// number. The rules of MQTT 3.1.1 hold: see [ValidName], [ValidFilter] and [Match]. A topic that begins with $ matches no
// filter that begins with + or #.
//
// # What is promised
//
//   - A subscription gets the messages that are published after [Subscription.Add] or [Subscription.Follow] has returned, and
//     none that are published after it has ended.
//   - All subscriptions get the messages of a topic in one order. The messages of one publisher come in the order in which they
//     were published, even if their topics differ.
//   - A message comes at most once, even if several filters of the subscription match.
//   - A message that finds the queue of a subscription full is dropped, or ends the subscription: see [Overflow].
//     [Subscription.Dropped] counts what was dropped, and [ErrSlow] says that the subscription has ended. Nothing else is lost
//     on one machine.
//   - A publisher never waits for a subscriber. It waits for schedulers that are late: [Broker.Publish] then returns an
//     act.Blocked.
//
// A topic keeps its latest retained message: see [Publication]. A later subscription gets it before all that is published after
// Add.
//
// # History and recovery
//
// A [Rule] with a History has topics keep their latest messages. Each has a [Position]: an epoch, and an offset that grows by
// one. An owner that knows the Position of the last message that it has got, such as a client that connects again, calls
// [Subscription.Follow] with it. First comes a [Followed] message, which says whether all that was missed comes next. So a
// subscription that follows a topic gets every message once, or is told that some are missing. The
// history is in memory: a new program has another epoch.
//
// # Presence
//
// A Rule with Presence keeps who is subscribed to a topic by its name: the Member of the [Options]. A member is present from its
// first subscription to its last one. A subscription by a filter with + or # does not count. [Broker.Members] lists the
// members. Who comes and goes is published in the topic "$presence/" and the name. A client that shows the members subscribes
// to that topic first and then asks for them, and so misses no change.
//
// # Names with one owner
//
// [Names] gives each name, such as the identifier of a client, to one owner at a time. When a second one takes the name over, the
// first is told. The second has the name when the first has ended.
//
// # Bounds
//
// Each queue has a bound: [Options].Queue, [Config].Pending, [Config].Topics and [Rule].History. Package inspect counts messages,
// drops, subscriptions, and what waits. What slow subscriptions have missed is a line in the log, at most one in a second.
//
// # Many machines
//
// An [Engine] connects the Brokers of several machines, and keeps the histories. The module topic/postgres is one, on a database
// that the program may have anyway. A message then comes to the subscriptions when it is stored, on all machines in the same
// order. [Broker.Confirm] says when that is. Without a history a message is lost for a machine that has no connection to the
// Engine when it is stored; with one, followers get it later, or are told.
//
// # What it is not
//
// It is not a queue of jobs: a message goes to all subscriptions, nobody acknowledges it, and one without a subscription is
// gone. Package stage has jobs. It is not a protocol either: examples/mqtt is a broker of MQTT, and examples/chat a chat over
// WebSocket.
package topic
