// Loaded ahead of Portkey's gateway: keeps it on the loopback interface, where
// it would listen on all, and gives it replies whose headers can be changed, as
// it expects of the runtime that it is made for. Node's can't.
import net from 'node:net';

const { listen } = net.Server.prototype;
net.Server.prototype.listen = function (port, ...rest) {
  return listen.call(this, port, '127.0.0.1', ...rest.filter((arg) => typeof arg === 'function'));
};

const { fetch } = globalThis;
globalThis.fetch = async (...args) => {
  const reply = await fetch(...args);
  return new Response(reply.body, reply);
};
