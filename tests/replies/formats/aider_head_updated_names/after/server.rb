class Server
  def port
    ENV.fetch("PORT", 3000)
  end
end
