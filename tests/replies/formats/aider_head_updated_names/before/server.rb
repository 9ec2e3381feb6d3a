class Server
  def port
    3000
  end
end
